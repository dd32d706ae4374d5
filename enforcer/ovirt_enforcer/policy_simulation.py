"""Lets all who migrate VMs by themselves act in turn on a snapshot, and names a loop if they make one."""

from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import Final, Literal, NamedTuple

from msgspec.structs import replace

from ovirt_enforcer.policy_actors import (
    Actor,
    Actors,
    SimulatedCluster,
    SimulatedMigration,
    balance,
    balance_unit,
    enforce_as_engine,
    unmeasured,
)
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import Named, NamedGroup, counted, named_cluster, named_groups
from ovirt_placement.model.record import Record
from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.problem.build_problem import DEFAULT_OPTIONS, PlanOptions
from ovirt_placement.planning.steps import Frozen
from ovirt_placement.rules.affinity.constraints import legacy_groups
from ovirt_placement.rules.doubts import doubt
from ovirt_placement.rules.elements.placement import World

#: After this many migrations it is given up.
MOST_MIGRATIONS: Final = 1000
#: A loop without some of the groups is searched for in this many rounds of it, and this many migrations more.
_ROUNDS, _MORE = 3, 20


class SimulationOutcome(StrEnum):
    """How a simulation ended."""

    SETTLED = "settled"  # no VM is migrated any more
    LOOP = "loop"  # it came back to where it had been before
    UNSETTLED = "not_settled"  # it was given up before either was seen


class SimulatedLoop(Record, frozen=True, omit_defaults=False):
    """Migrations that bring every VM back to where it was, and so go on for ever."""

    migrations: tuple[SimulatedMigration, ...]
    #: The affinity groups, or legacy labels, that make it.
    groups: tuple[NamedGroup, ...]
    #: Whether each of `groups` is known to be needed for it; else there was no time to try all without.
    groups_needed: bool
    #: The policy units that ask for its migrations.
    units: tuple[str, ...]


class ClusterSimulation(Record, frozen=True, omit_defaults=False):
    """What all who migrate VMs of a cluster make of it."""

    cluster: Named
    outcome: SimulationOutcome
    #: How many VMs were migrated until it settled, was given up, or until the loop began.
    migrations: int
    #: Who took part.
    actors: tuple[Actor, ...]
    #: The balance that took part, by its unit.
    balance: str | None
    #: Whether it was given up since time ran out; else for the number of migrations.
    out_of_time: bool
    loop: SimulatedLoop | None
    #: Why it is not known whether it settles, as what rules or balance go by is not known; empty as a rule.
    doubt: str


class Simulations(Record, frozen=True, omit_defaults=False):
    """Whether rules, scheduling policy and enforcer come to rest: `simulate-policy --json`."""

    format: Literal[1]
    clusters: tuple[ClusterSimulation, ...]


class Run(NamedTuple):
    outcome: SimulationOutcome
    #: Until it ended, or the loop began, and one round of the loop.
    migrations: tuple[SimulatedMigration, ...]
    loop: tuple[SimulatedMigration, ...]
    #: The state that all ended in; of a loop, the one that comes again, and the actor whose turn it is then.
    end: Snapshot
    next: Actor
    out_of_time: bool


def simulate(
    snapshot: Snapshot,
    cluster: str,
    frozen: Frozen = (),
    *,
    options: PlanOptions = DEFAULT_OPTIONS,
    deadline: Deadline = NEVER,
    most: int = MOST_MIGRATIONS,
) -> ClusterSimulation:
    """Let the enforcer, the engine's enforcement and the balance of the policy act in turn on a snapshot.

    VMs in `frozen` are left alone by the enforcer. The same snapshot comes to the same end, unless the
    deadline cuts it short. Where the engine draws lots, one draw is tried.
    """
    # Where it is not known what the balance goes by, a loop of the others is one, and no rest is.
    blind = unmeasured(snapshot, cluster)
    unit = None if blind else balance_unit(snapshot.cluster_by_id[cluster])
    names = (Actor.ENFORCER, Actor.ENGINE, *((Actor.BALANCE,) if unit is not None else ()))
    actors = Actors(names, frozen, options)
    why = doubt(snapshot, cluster)
    went = run(snapshot, cluster, actors, 0 if why else most, deadline)
    loop = None
    if went.outcome is SimulationOutcome.LOOP:
        groups = _needed_groups(went, cluster, actors, deadline)
        units = tuple(dict.fromkeys(unit for one in went.loop for unit in one.units))
        loop = SimulatedLoop(went.loop, named_groups(groups, snapshot), not deadline.over, units)
    return ClusterSimulation(
        cluster=named_cluster(cluster, snapshot),
        outcome=SimulationOutcome.UNSETTLED if blind and loop is None else went.outcome,
        migrations=len(went.migrations),
        actors=names,
        balance=unit,
        out_of_time=went.out_of_time and went.outcome is SimulationOutcome.UNSETTLED,
        loop=loop,
        doubt=why or blind,
    )


def run(
    snapshot: Snapshot,
    cluster: str,
    actors: Actors,
    most: int,
    deadline: Deadline,
    first: Actor | None = None,
) -> Run:
    """Let all act, `first` before the others, until they settle, go in circles, or migrated this many VMs."""
    simulated = SimulatedCluster(_arrived(snapshot, cluster), cluster)
    acts = {Actor.ENFORCER: actors.enforce, Actor.ENGINE: enforce_as_engine, Actor.BALANCE: balance}
    names, turn = actors.names, 0 if first is None else actors.names.index(first)
    made: list[SimulatedMigration] = []
    resting: set[Actor] = set()
    #: How many migrations there had been, by where all were and whose turn it was.
    seen: dict[tuple[int, frozenset[tuple[str, str | None]]], int] = {}

    def ended(outcome: SimulationOutcome, begins: int | None = None, length: int = 0) -> Run:
        before, loop = made[:begins], () if begins is None else made[begins : begins + length]
        return Run(outcome, tuple(before), tuple(loop), simulated.snapshot, names[turn], deadline.over)

    while len(resting) < len(names):
        if deadline.over or len(made) >= most:
            return ended(SimulationOutcome.UNSETTLED)
        begins = seen.setdefault((turn, simulated.placement), len(made))
        if begins < len(made):
            length = len(made) - begins
            while begins > 0 and made[begins - 1] == made[begins - 1 + length]:
                begins -= 1  # it began before it came to where it had been
            return ended(SimulationOutcome.LOOP, begins, length)
        moved = acts[names[turn]](simulated, deadline)
        made += moved
        resting = set() if moved else resting | {names[turn]}
        turn = (turn + 1) % len(names)
    return ended(SimulationOutcome.UNSETTLED if deadline.over else SimulationOutcome.SETTLED)


def _arrived(snapshot: Snapshot, cluster: str) -> Snapshot:
    """The cluster once what is on its way has arrived, as far as it is known where to."""
    going = {
        vm.id: snapshot.pending_hosts[vm.id][-1]
        for vm in snapshot.vms
        if vm.cluster == cluster and vm.host is not None and vm.id in snapshot.pending_hosts
    }
    there = {vm: host for vm, host in going.items() if host in snapshot.host_by_id}
    return World(snapshot).arrived(there, source_freed=True).snapshot if there else snapshot


def _needed_groups(loop: Run, cluster: str, actors: Actors, deadline: Deadline) -> list[str]:
    """Groups that make the same VMs go round, and no longer do without any one of them.

    There may be more than that where the deadline is over.
    """
    vms, most = {one.vm.id for one in loop.loop}, _ROUNDS * len(loop.loop) + _MORE

    def goes_round(groups: Collection[str]) -> bool:
        found = run(_with_only(loop.end, cluster, groups), cluster, actors, most, deadline, loop.next)
        return vms <= {one.vm.id for one in found.loop}

    groups = (*loop.end.affinity_groups, *legacy_groups(loop.end))
    members = {
        group.id: loop.end.group_vms.get(group.id, group.vms) for group in groups if group.cluster == cluster
    }
    # Few groups are tied to these VMs by shared members, and they alone are likely to do it.
    tied, reached = set[str](), vms
    while more := {group for group in members if not reached.isdisjoint(members[group])} - tied:
        tied |= more
        reached = reached.union(*(members[group] for group in more))
    needed = sorted(tied if goes_round(tied) else members)
    for group in tuple(needed):
        without = [one for one in needed if one != group]
        if goes_round(without):
            needed = without
    return needed


def _with_only(snapshot: Snapshot, cluster: str, groups: Collection[str]) -> Snapshot:
    kept = (group for group in snapshot.affinity_groups if group.cluster != cluster or group.id in groups)
    labels = (
        replace(label, implicit=label.implicit and label.id in groups) for label in snapshot.affinity_labels
    )
    return replace(snapshot, affinity_groups=tuple(kept), affinity_labels=tuple(labels))


def simulation_text(simulation: ClusterSimulation) -> str:
    """A simulation in lines: how it ended, and of a loop who moves which VM for what, and what makes it."""
    actors = [actor.text for actor in simulation.actors if actor is not Actor.BALANCE]
    taking_part = " and ".join([*actors, simulation.balance or "no balance that is known"])
    after, loop = f"after {counted(simulation.migrations, 'migration')}", simulation.loop
    if loop is not None:
        ending = f"a LOOP: {after} come {counted(len(loop.migrations), 'migration')} again and again."
    elif simulation.outcome is SimulationOutcome.SETTLED:
        ending = f"settles {after}." if simulation.migrations else "no VM is migrated."
    elif simulation.doubt:
        ending = f"not known yet: {simulation.doubt}."
    else:
        ending = f"not settled {after}; {'there was no more time' if simulation.out_of_time else 'given up'}."
    lines = [f"Cluster {simulation.cluster.name} ({taking_part}): {ending}"]
    return "\n".join([*lines, *(_loop_text(loop) if loop is not None else ())])


def _loop_text(loop: SimulatedLoop) -> Iterator[str]:
    for number, one in enumerate(loop.migrations, 1):
        units = f" ({', '.join(one.units)})" if one.units else ""
        migration = f"{one.vm.name} from {one.from_.name} to {one.to.name}"
        yield f"  {number}. {migration} by {one.by.text}{units}: {one.because}"
    yield f"  Made by: {', '.join([*(group.title for group in loop.groups), *loop.units])}"
    if not loop.groups_needed:
        yield "  There was no time to see which of these groups it needs."
