"""What it takes to empty hosts for maintenance: the migrations, how long they take, and what cannot leave."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.answers.document import duration_text, fewest_text
from ovirt_placement.answers.foreseen_moves import (
    ForeseenMove,
    MovedByEngine,
    migrations,
    move_record,
    move_text,
    moved_by_engine,
    moved_by_engine_text,
)
from ovirt_placement.answers.plans.obstacles import kept_text
from ovirt_placement.forecast.maintenance import Evacuation, Staying
from ovirt_placement.model import Snapshot
from ovirt_placement.model.amounts import counted
from ovirt_placement.model.names import Named, named_cluster, named_host, named_hosts, named_vm
from ovirt_placement.model.record import Record
from ovirt_placement.planning.obstacles import ObstacleKind


class StayingVm(Record, frozen=True, omit_defaults=False):
    """A VM that cannot leave its host, or for which no way to leave it was found."""

    vm: Named
    host: Named
    #: Whether it surely cannot; else not all could be tried, as where the time ran out.
    proven: bool
    #: What stands in the way, as sentences.
    because: tuple[str, ...]


class EvacuationRecord(Record, frozen=True, omit_defaults=False, kw_only=True):
    """What it takes to empty hosts of a cluster."""

    cluster: Named
    hosts: tuple[Named, ...]
    #: In their order, with those that each waits for.
    moves: tuple[ForeseenMove, ...]
    #: Whether fewer migrations surely do not take as many VMs off these hosts.
    proven: bool
    #: How long the migrations are thought to take.
    seconds: float
    #: VMs that the engine itself moves, with the host where each is expected.
    moved_by_engine: tuple[MovedByEngine, ...]
    #: VMs that do not leave; none if the hosts become empty.
    staying: tuple[StayingVm, ...]


def evacuation_record(found: Evacuation, snapshot: Snapshot) -> EvacuationRecord:
    """Give it names."""
    return EvacuationRecord(
        cluster=named_cluster(found.cluster, snapshot),
        hosts=named_hosts(found.hosts, snapshot),
        moves=tuple(move_record(step, snapshot) for step in found.plan.steps),
        proven=found.plan.proven,
        seconds=found.plan.seconds,
        moved_by_engine=moved_by_engine(found.by_engine, snapshot),
        staying=tuple(_staying(one, snapshot) for one in found.staying),
    )


def _staying(one: Staying, snapshot: Snapshot) -> StayingVm:
    because = tuple(dict.fromkeys(kept_text(obstacle, snapshot) for obstacle in one.obstacles))
    proven = bool(one.obstacles) and all(
        obstacle.kind is not ObstacleKind.NOT_FOUND for obstacle in one.obstacles
    )
    return StayingVm(named_vm(one.vm, snapshot), named_host(one.host, snapshot), proven, because)


def evacuation_text(found: EvacuationRecord) -> Iterator[str]:
    """The answer as a person reads it."""
    hosts = ", ".join(host.name for host in found.hosts)
    yield f"Maintenance of {hosts} in cluster {found.cluster.name}: {_summary(found)}"
    for number, move in enumerate(found.moves, 1):
        yield f"  {number}. {move_text(move)}"
    yield from (f"  {moved_by_engine_text(moved)}" for moved in found.moved_by_engine)
    for one in found.staying:
        yield (
            f"  {one.vm.name} cannot leave {one.host.name}:"
            if one.proven
            else f"  no way was found for {one.vm.name} to leave {one.host.name}:"
        )
        yield from (f"    - {reason}" for reason in one.because or ("it was not looked into why",))


def _summary(found: EvacuationRecord) -> str:
    count = sum(len(move.vms) for move in found.moves)
    fewest = fewest_text(found.proven, otherwise="fewer may do")
    cost = (
        f"{migrations(count)} ({fewest}), about {duration_text(found.seconds)}" if count else "no migrations"
    )
    if found.staying:
        sure = sum(one.proven for one in found.staying)
        parts = [f"{counted(sure, 'VM')} cannot leave"] if sure else []
        if more := len(found.staying) - sure:
            parts.append(f"for {counted(more, 'VM')} no way was found, and not all could be tried")
        return "; ".join([*parts, f"the others need {cost}"])
    if count or not found.moved_by_engine:
        return f"empty after {cost}" if count else "empty already"
    return "empty once the engine has moved its own VM"
