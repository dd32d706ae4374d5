"""Rehearsals as data: what `ovirt-enforcer simulate-policy --json` prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from msgspec import field

from ovirt_enforcer.rehearsing.course import Actor, Loop, Migration, Outcome, Rehearsal
from ovirt_placement.answers.names import Named, named_cluster, named_groups, named_host, named_vm
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.record import Record

#: Grows when something that programs may rely on goes, or changes its meaning; not when something is added.
FORMAT: Final = 1


class RehearsedMigration(Record, frozen=True, omit_defaults=False):
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


class RehearsedLoop(Record, frozen=True, omit_defaults=False):
    """Migrations that bring every VM back to where it was, and so go on for ever."""

    migrations: tuple[RehearsedMigration, ...]
    #: The affinity groups, or legacy labels, that make it.
    groups: tuple[Named, ...]
    #: Whether each of `groups` is known to be needed for it.
    groups_needed: bool
    #: The policy units that ask for its migrations.
    units: tuple[str, ...]


class ClusterRehearsal(Record, frozen=True, omit_defaults=False):
    """What all who move VMs of a cluster make of it."""

    cluster: Named
    outcome: Outcome
    #: How many VMs were migrated until it settled, was given up, or until the loop began.
    migrations: int
    #: Who took part.
    actors: tuple[Actor, ...]
    #: The balance that took part, by its unit.
    balance: str | None
    #: Whether it was given up for want of time.
    out_of_time: bool
    loop: RehearsedLoop | None


class Rehearsals(Record, frozen=True, omit_defaults=False):
    """Whether rules, scheduling policy and enforcer come to rest."""

    format: Literal[1]
    clusters: tuple[ClusterRehearsal, ...]


def rehearsals_data(rehearsals: Iterable[Rehearsal], snapshot: Snapshot) -> Rehearsals:
    return Rehearsals(format=FORMAT, clusters=tuple(_cluster(one, snapshot) for one in rehearsals))


def _cluster(rehearsal: Rehearsal, snapshot: Snapshot) -> ClusterRehearsal:
    return ClusterRehearsal(
        cluster=named_cluster(rehearsal.cluster, snapshot),
        outcome=rehearsal.outcome,
        migrations=rehearsal.migrations,
        actors=rehearsal.actors,
        balance=rehearsal.balance,
        out_of_time=rehearsal.out_of_time,
        loop=None if rehearsal.loop is None else _loop(rehearsal.loop, snapshot),
    )


def _loop(loop: Loop, snapshot: Snapshot) -> RehearsedLoop:
    return RehearsedLoop(
        migrations=tuple(_migration(one, snapshot) for one in loop.migrations),
        groups=named_groups(loop.groups, snapshot),
        groups_needed=loop.groups_needed,
        units=loop.units,
    )


def _migration(one: Migration, snapshot: Snapshot) -> RehearsedMigration:
    return RehearsedMigration(
        vm=named_vm(one.vm, snapshot),
        from_=named_host(one.source, snapshot),
        to=named_host(one.target, snapshot),
        by=one.by,
        units=one.units,
        groups=named_groups(one.groups, snapshot),
        because=one.because,
    )
