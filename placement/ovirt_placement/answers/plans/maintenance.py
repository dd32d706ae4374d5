"""What it takes to empty hosts: the migrations, rolling maintenance in rounds, and what cannot leave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from ovirt_placement.answers.document import duration_text, fewest_rounds_text, fewest_text
from ovirt_placement.answers.plans import NamedObstacle, kept_reasons, named_obstacles, reason
from ovirt_placement.answers.plans.text import after_text, migration_text
from ovirt_placement.model.names import NamedCluster, NamedHost, NamedVm, counted, names_of
from ovirt_placement.model.record import From, Record
from ovirt_placement.planning.outages import Staying
from ovirt_placement.planning.plan import ObstacleKind


# -- A migration that a change would cost: as data and as a line.
class ForeseenMove(Record, frozen=True, omit_defaults=False):
    """A migration that the change would cost."""

    vms: tuple[NamedVm, ...]
    sources: tuple[NamedHost, ...]
    to: Annotated[NamedHost, From("target")]
    #: What it is for, as a sentence.
    reason: Annotated[str, From(lambda step, snapshot: reason(step, snapshot))]
    #: Places in the list, from 0, of the moves that must have ended before.
    after: tuple[int, ...]
    #: Whether the engine is asked to move all VMs of the positive group with the first one.
    closure: bool


class MovedByEngine(Record, frozen=True, omit_defaults=False):
    """The hosted engine, which is moved when its host is deactivated; where it goes is not for sure."""

    vm: NamedVm
    expected: NamedHost


def move_text(move: ForeseenMove) -> str:
    """Which VMs go where, what for, and which moves they wait for."""
    pairs = ((vm.name, source.name) for vm, source in zip(move.vms, move.sources, strict=True))
    return migration_text(pairs, move.to.name, move.reason, closure=move.closure) + after_text(move.after)


def moved_by_engine_text(moved: MovedByEngine) -> str:
    return f"{moved.vm.name} is moved by the engine itself, probably to {moved.expected.name}"


# -- What it takes to empty hosts for maintenance: the migrations, how long they take, and what cannot leave.
class StayingVm(Record, frozen=True, omit_defaults=False):
    """A VM that cannot leave its host, or for which no way to leave it was found."""

    vm: NamedVm
    host: NamedHost
    #: Whether it surely cannot; else not all could be tried, as where the time ran out.
    proven: Annotated[bool, From(lambda one, _: _is_proven(one))]
    #: What stands in the way, as sentences.
    because: Annotated[
        tuple[str, ...], From(lambda one, snapshot: kept_reasons(one.vm, one.obstacles, snapshot))
    ]


class EvacuationRecord(Record, frozen=True, omit_defaults=False, kw_only=True):
    """What it takes to empty hosts of a cluster."""

    cluster: NamedCluster
    hosts: tuple[NamedHost, ...]
    #: In their order, with those that each waits for.
    moves: Annotated[tuple[ForeseenMove, ...], From("plan.steps")]
    #: Whether fewer migrations surely do not take as many VMs off these hosts.
    proven: Annotated[bool, From("plan.proven")]
    #: How long the migrations are estimated to take.
    seconds: Annotated[float, From("plan.seconds")]
    #: VMs that the engine itself moves, with the host where each is expected.
    moved_by_engine: Annotated[tuple[MovedByEngine, ...], From("by_engine")]
    #: VMs that do not leave; none if the hosts become empty.
    staying: tuple[StayingVm, ...]


def _is_proven(one: Staying) -> bool:
    kinds = {obstacle.kind for obstacle in one.obstacles}
    return bool(kinds) and ObstacleKind.NOT_FOUND not in kinds


def evacuation_text(found: EvacuationRecord) -> Iterator[str]:
    hosts = names_of(found.hosts)
    yield f"Maintenance of {hosts} in cluster {found.cluster.name}: {_evacuation_summary(found)}"
    yield from (f"  {number}. {move_text(move)}" for number, move in enumerate(found.moves, 1))
    yield from (f"  {moved_by_engine_text(moved)}" for moved in found.moved_by_engine)
    for one in found.staying:
        yield (
            f"  {one.vm.name} cannot leave {one.host.name}:"
            if one.proven
            else f"  no way was found for {one.vm.name} to leave {one.host.name}:"
        )
        yield from (f"    - {reason}" for reason in one.because or ("it was not looked into why",))


def _evacuation_summary(found: EvacuationRecord) -> str:
    count = sum(len(move.vms) for move in found.moves)
    fewest = fewest_text(found.proven, otherwise="fewer may do")
    cost = f"{counted(count, 'migration')} ({fewest}), about {duration_text(found.seconds)}"
    if found.staying:
        sure = sum(one.proven for one in found.staying)
        parts = [f"{counted(sure, 'VM')} cannot leave"] if sure else []
        if more := len(found.staying) - sure:
            parts.append(f"for {counted(more, 'VM')} no way was found, and not all could be tried")
        return "; ".join([*parts, f"the others need {cost}"] if count else parts)
    if count or not found.moved_by_engine:
        return f"empty after {cost}" if count else "empty already"
    return "empty once the engine has moved its own VM"


# -- A plan of rolling maintenance as data: rounds, each VM's moves, bounds, and why hosts get no round.
#: Grows when something that programs may rely on goes, or changes its meaning; not when something is added.
FORMAT: Literal[1] = 1


class MaintenanceRound(Record, frozen=True, omit_defaults=False):
    """Hosts that are out at the same time, and what happens before."""

    #: In the order in which they are deactivated.
    hosts: tuple[NamedHost, ...]
    #: The migrations that empty them, with those of this round that each waits for.
    moves: Annotated[tuple[ForeseenMove, ...], From("steps")]
    #: VMs that are stopped before, and started again on their hosts afterwards.
    stopped: tuple[NamedVm, ...]
    moved_by_engine: Annotated[tuple[MovedByEngine, ...], From("by_engine")]
    #: How long the migrations are estimated to take, and then the maintenance.
    migrating_seconds: float
    maintenance_seconds: float


class HostWithoutRound(Record, frozen=True, omit_defaults=False):
    """A host that no round takes out."""

    host: NamedHost
    #: VMs that cannot leave it.
    vms: tuple[NamedVm, ...]
    #: What stands in the way: the smallest set that was found.
    obstacles: Annotated[tuple[NamedObstacle, ...], named_obstacles]


class RelaxedObstacle(Record, frozen=True, omit_defaults=False):
    """What stands in the way, and the hosts that get a round as well where it alone is relaxed."""

    obstacle: Annotated[
        NamedObstacle, From(lambda one, snapshot: named_obstacles((one.obstacle,), snapshot)[0])
    ]
    hosts: tuple[NamedHost, ...]
    #: Whether its VMs are held back, perhaps for a while only: after a migration, say.
    held: Annotated[bool, From(lambda one, _: bool(one.obstacle.words))]


class VmThatStays(Record, frozen=True, omit_defaults=False):
    """A VM that was to be brought back, and why it is not."""

    vm: NamedVm
    because: Annotated[str, From(lambda kept, snapshot: "; ".join(kept_reasons(*kept, snapshot)))]


class ClusterMaintenance(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The maintenance of hosts of one cluster."""

    cluster: NamedCluster
    #: How many hosts may be out at once.
    at_once: int
    rounds: tuple[MaintenanceRound, ...]
    #: How many VMs are migrated before rounds; one that is migrated twice counts twice.
    migrations: int
    #: Rounds that any plan for these hosts has, and migrations that any plan has with this many rounds.
    rounds_at_least: int
    migrations_at_least: int
    #: Whether no plan has fewer rounds, and none with as few fewer migrations.
    proven: bool
    #: How long all of it is estimated to take.
    seconds: float
    without_round: Annotated[tuple[HostWithoutRound, ...], From("blocked")]
    #: Migrations after the last round that bring VMs back, and how long they are estimated to take.
    back: tuple[ForeseenMove, ...]
    back_seconds: float
    not_back: Annotated[tuple[VmThatStays, ...], From("kept")]
    #: What relaxing each obstacle by itself comes to: a rule, the HA reservation, or by stopping VMs. As much
    #: as there was time to try.
    relaxed: Annotated[tuple[RelaxedObstacle, ...], From(lambda plan, _: plan.relaxations)]


class MaintenancePlans(Record, frozen=True, omit_defaults=False):
    """The maintenance of all hosts that were asked for."""

    format: Literal[1]
    clusters: tuple[ClusterMaintenance, ...]


# -- A plan of rolling maintenance as an administrator reads it: made from nothing but the record.
def maintenance_text(found: ClusterMaintenance) -> Iterator[str]:
    """Rounds with their moves, then hosts without one."""
    yield f"Maintenance in cluster {found.cluster.name}: {summary_text(found)}"
    rounds = (line for number, one in enumerate(found.rounds, 1) for line in _round_text(number, one))
    yield from (f"  {line}" for line in (*rounds, *rest_text(found)))


def rest_text(found: ClusterMaintenance) -> Iterator[str]:
    """What stands after the rounds: the way back, hosts without a round, and what would help."""
    if found.back:
        count = sum(len(move.vms) for move in found.back)
        yield f"Back: {counted(count, 'migration')}, about {duration_text(found.back_seconds)}"
    yield from (f"  {place}. {move_text(move)}" for place, move in enumerate(found.back, 1))
    yield from (f"VM {one.vm.name} is not brought back: {one.because}" for one in found.not_back)
    for left in found.without_round:
        yield f"No round for {left.host.name}:"
        yield from (f"  - {obstacle.text}" for obstacle in left.obstacles)
    yield from (_relaxed_text(one) for one in found.relaxed)


def summary_text(found: ClusterMaintenance) -> str:
    """How many hosts in how many rounds, what that costs, and how near it is to the best."""
    if not found.rounds:
        return "no host can be taken out now."
    hosts = sum(len(one.hosts) for one in found.rounds)
    rounds, count = len(found.rounds), found.migrations
    out = f"{counted(hosts, 'host')} in {counted(rounds, 'round')}"
    bound = "" if found.proven else f" (at least {found.rounds_at_least})"
    cost = f"{counted(count, 'migration')} {fewest_rounds_text(found.proven, found.migrations_at_least)}"
    return f"{out}{bound}, {cost}, about {duration_text(found.seconds)}."


def _round_text(number: int, one: MaintenanceRound) -> Iterator[str]:
    empty = "nothing to migrate"
    if one.moves:
        count = sum(len(move.vms) for move in one.moves)
        empty = f"{counted(count, 'migration')}, about {duration_text(one.migrating_seconds)}"
    out = f"then out for {duration_text(one.maintenance_seconds)}"
    yield f"Round {number}: {names_of(one.hosts)} ({empty}; {out})"
    yield from (f"  {place}. {move_text(move)}" for place, move in enumerate(one.moves, 1))
    if one.stopped:
        yield f"  stopped meanwhile, as you agreed to: {names_of(one.stopped)}"
    yield from (f"  {moved_by_engine_text(moved)}" for moved in one.moved_by_engine)


def _relaxed_text(one: RelaxedObstacle) -> str:
    groups = " and ".join(group.title for group in one.obstacle.groups)
    stop = " ".join(f"--stop {vm.name}" for vm in one.obstacle.vms)
    stays = (
        f"Once {names_of(one.obstacle.vms)} may be migrated, or with {stop}" if one.held else f"With {stop}"
    )
    relaxed = {ObstacleKind.RULE: f"Without {groups}", ObstacleKind.STAYS: stays}.get(
        ObstacleKind(one.obstacle.kind), "Without the HA reservation of the cluster"
    )
    if not one.hosts:
        return f"{relaxed} alone, there is still no round for any of them."
    return f"{relaxed}, there is a round for {names_of(one.hosts)} as well."
