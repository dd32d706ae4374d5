"""Simulations as data: what `ovirt-enforcer simulate-policy --json` prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from msgspec import field

from ovirt_enforcer.policy_simulation.course import Actor, Loop, MigrationMade, Simulation, SimulationOutcome
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import Named, named_cluster, named_groups, named_host, named_vm
from ovirt_placement.model.record import Record

#: Grows when something that programs may rely on goes, or changes its meaning; not when something is added.
FORMAT: Final = 1


class SimulatedMigration(Record, frozen=True, omit_defaults=False):
    """One VM that somebody moves."""

    vm: Named
    from_: Named = field(name="from")
    to: Named
    by: Actor
    #: The policy units whose rule asks for it, or the balance.
    units: tuple[str, ...]
    #: Affinity groups, or legacy labels, that ask for it.
    groups: tuple[Named, ...]
    #: Why, as a sentence.
    because: str


class SimulatedLoop(Record, frozen=True, omit_defaults=False):
    """Migrations that bring every VM back to where it was, and so go on for ever."""

    migrations: tuple[SimulatedMigration, ...]
    #: The affinity groups, or legacy labels, that make it.
    groups: tuple[Named, ...]
    #: Whether each of `groups` is known to be needed for it.
    groups_needed: bool
    #: The policy units that ask for its migrations.
    units: tuple[str, ...]


class ClusterSimulation(Record, frozen=True, omit_defaults=False):
    """What all who move VMs of a cluster make of it."""

    cluster: Named
    outcome: SimulationOutcome
    #: How many VMs were migrated until it settled, was given up, or until the loop began.
    migrations: int
    #: Who took part.
    actors: tuple[Actor, ...]
    #: The balance that took part, by its unit.
    balance: str | None
    #: Whether it was given up since time ran out.
    out_of_time: bool
    loop: SimulatedLoop | None


class Simulations(Record, frozen=True, omit_defaults=False):
    """Whether rules, scheduling policy and enforcer come to rest."""

    format: Literal[1]
    clusters: tuple[ClusterSimulation, ...]


def simulations_data(simulations: Iterable[Simulation], snapshot: Snapshot) -> Simulations:
    return Simulations(format=FORMAT, clusters=tuple(_cluster(one, snapshot) for one in simulations))


def _cluster(simulation: Simulation, snapshot: Snapshot) -> ClusterSimulation:
    return ClusterSimulation(
        cluster=named_cluster(simulation.cluster, snapshot),
        outcome=simulation.outcome,
        migrations=simulation.migrations,
        actors=simulation.actors,
        balance=simulation.balance,
        out_of_time=simulation.out_of_time,
        loop=None if simulation.loop is None else _loop(simulation.loop, snapshot),
    )


def _loop(loop: Loop, snapshot: Snapshot) -> SimulatedLoop:
    return SimulatedLoop(
        migrations=tuple(_migration(one, snapshot) for one in loop.migrations),
        groups=named_groups(loop.groups, snapshot),
        groups_needed=loop.groups_needed,
        units=loop.units,
    )


def _migration(one: MigrationMade, snapshot: Snapshot) -> SimulatedMigration:
    return SimulatedMigration(
        vm=named_vm(one.vm, snapshot),
        from_=named_host(one.source, snapshot),
        to=named_host(one.target, snapshot),
        by=one.by,
        units=one.units,
        groups=named_groups(one.groups, snapshot),
        because=one.because,
    )
