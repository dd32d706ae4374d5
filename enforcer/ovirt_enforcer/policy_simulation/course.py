"""What came of a simulation, as data: who moved which VM and why, and whether that ends."""

from __future__ import annotations

from enum import StrEnum

from ovirt_placement.planning.plan import Struct


class Actor(StrEnum):
    """Who migrates VMs on their own."""

    ENFORCER = "enforcer"  # this one, by its plans
    ENGINE = "engine"  # the engine's own affinity rules enforcement
    BALANCE = "balance"  # the balance of the cluster's scheduling policy


class MigrationMade(Struct, frozen=True):
    """One VM that somebody moves. Everything is given as ids."""

    vm: str
    source: str
    target: str
    by: Actor
    #: The policy units whose rule asks for it, or the balance; none if it only makes room for the next.
    units: tuple[str, ...]
    #: Affinity groups, or legacy labels, that ask for it.
    groups: tuple[str, ...]
    #: Why, as a sentence with names.
    because: str


class SimulationOutcome(StrEnum):
    """How a simulation ended."""

    SETTLED = "settled"  # nobody moves anything any more
    LOOP = "loop"  # it came back to where it had been before
    UNSETTLED = "not_settled"  # it was given up before either was seen


class Loop(Struct, frozen=True):
    """Migrations that bring every VM back to where it was, and so go on for ever."""

    migrations: tuple[MigrationMade, ...]
    #: The affinity groups, or legacy labels, that make it.
    groups: tuple[str, ...]
    #: The policy units that ask for its migrations.
    units: tuple[str, ...]
    #: Whether each of `groups` is known to be needed for it; else there was no time to try all without.
    groups_needed: bool


class Simulation(Struct, frozen=True):
    """What all who move VMs of a cluster make of it."""

    cluster: str
    outcome: SimulationOutcome
    #: How many VMs were migrated until it settled, was given up, or until the loop began.
    migrations: int
    #: Who took part.
    actors: tuple[Actor, ...]
    #: The balance that took part, by its unit.
    balance: str | None = None
    loop: Loop | None = None
    #: Whether it was given up since time ran out; else for the number of migrations.
    out_of_time: bool = False
