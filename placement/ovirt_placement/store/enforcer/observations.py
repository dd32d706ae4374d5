"""Remembers what is observed: each hour of a cluster, for more than a year, and the groups of VMs.

An hour is one row, so that a cluster takes 9,600 of them at most. Plans and migrations are counted where they
are recorded, and only once they are forgotten there does the sample of their hour keep their number. What a
VM loses with its cluster the engine forgets without a word: only an earlier record shows it afterwards.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, case, or_

from ovirt_placement.store.sql.access import EngineRows, StoreAccess
from ovirt_placement.store.sql.schema import (
    IS_MIGRATION,
    intents,
    lost_memberships,
    memberships,
    plans,
    samples,
)

#: For so long samples are kept.
KEPT_SECONDS: Final = 400 * 24 * 3600.0
HOUR_SECONDS: Final = 3600

#: The cluster and the hour of a sample.
_Key = tuple[str, int]
_COUNTS = ("plans", "done", "failed")
#: What is the worse the higher it is, or the lower; of all else the last one of an hour stands.
_WORST: Final = {"hard": 1, "soft": 1, "ha_survived": -1, "ha_not_restarted": 1}
#: `Cause.NEVER_ASKED`, as the database has it.
_NEVER_ASKED: Final = "never_asked"


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """What an hour was like in a cluster."""

    cluster: str
    #: In hours since the epoch, by the database's clock.
    hour: int
    #: The cluster's name; None where it was not written down in that hour.
    cluster_name: str | None = None
    #: Plans that were made for the first time, and migrations that ended: done, or failed.
    plans: int = 0
    done: int = 0
    failed: int = 0
    #: The most hard and soft rules that were violated at once; None where it was not observed.
    hard: int | None = None
    soft: int | None = None
    #: How many hosts may fail by the HA reservation, how many of them were survived at the worst, and the
    #: most VMs that would not have been restarted; None where there was no verdict.
    ha_failures: int | None = None
    ha_survived: int | None = None
    ha_not_restarted: int | None = None


class Samples(NamedTuple):
    """What is known of a span of time."""

    #: When it was read, in seconds since the epoch, by the database's clock.
    until: float
    #: The hours of which anything is known, the oldest first.
    samples: tuple[Sample, ...]


class SampleStore(StoreAccess):
    """The samples of one engine's clusters, in a database. Only a leader may write: raises `LeaseLost`."""

    def record(self, cluster: str, cluster_name: str, **seen: int) -> float:
        """Write down what is seen, by the names of a sample's fields; return the seconds left of the hour.

        Of an hour the worst of each stands.
        """
        worst = {
            name: sign * _most(sign * samples.c[name], sign * seen[name])
            for name, sign in _WORST.items()
            if name in seen
        }
        with self._leading() as rows:
            hour, gone = divmod(rows.now(), HOUR_SECONDS)
            key = {"cluster": cluster, "hour": int(hour), **dict.fromkeys(_COUNTS, 0)}
            rows.put(samples, key, {"cluster_name": cluster_name, **seen}, **worst)
        return HOUR_SECONDS - gone

    def samples(self, *, since_seconds: float) -> Samples:
        """Read what is known of the last `seconds`."""
        with self._transaction() as rows:
            until = rows.now()
            since = until - since_seconds
            first = int(since // HOUR_SECONDS)
            found = {
                (row.cluster, row.hour): row._asdict()
                for row in rows.execute(rows.select(samples).where(samples.c.hour >= first))
            }
            counts = _counts(rows, intents.c.updated >= since, plans.c.created >= since)
        for key, counted in counts.items():
            sample = found.setdefault(key, {"cluster": key[0], "hour": key[1]})
            sample |= {name: sample.get(name, 0) + counted[name] for name in _COUNTS}
        listed = (Sample(**sample) for sample in found.values())
        return Samples(until, tuple(sorted(listed, key=lambda one: (one.hour, one.cluster))))


def keep_counts(rows: EngineRows, long_ago: float) -> None:
    """Count in samples what is about to be forgotten: what was changed last before `long_ago`.

    Samples that are too old themselves are deleted.
    """
    counts = _counts(rows, intents.c.updated < long_ago, plans.c.updated < long_ago)
    for (cluster, hour), counted in counts.items():
        values = {name: counted[name] for name in _COUNTS}
        added = {name: samples.c[name] + number for name, number in values.items()}
        key = {"cluster": cluster, "hour": hour}
        rows.execute(rows.insert_or_update(samples, {**key, **values}, added))
    first = int((rows.now() - KEPT_SECONDS) // HOUR_SECONDS)
    rows.remove(samples, samples.c.hour < first)


def _counts(
    rows: EngineRows, migrations: ColumnElement[bool], made: ColumnElement[bool]
) -> Mapping[_Key, Counter[str]]:
    counts: defaultdict[_Key, Counter[str]] = defaultdict(Counter)
    asked = or_(intents.c.cause.is_(None), intents.c.cause != _NEVER_ASKED)
    columns = (intents.c.cluster, intents.c.updated, intents.c.state)
    has_ended = intents.c.state.in_(("done", "failed"))
    ended = rows.select(intents, *columns).where(migrations, IS_MIGRATION, has_ended, asked)
    for row in rows.execute(ended):
        counts[row.cluster, int(row.updated // HOUR_SECONDS)][row.state] += 1
    found = rows.execute(rows.select(plans, plans.c.cluster, plans.c.created).where(made))
    for row in found:
        counts[row.cluster, int(row.created // HOUR_SECONDS)]["plans"] += 1
    return counts


def _most(known: ColumnElement[Any], value: int) -> ColumnElement[Any]:
    return case((known > value, known), else_=value)


class MembershipKind(StrEnum):
    """What a VM is a member of."""

    GROUP = "group"
    LABEL = "label"


class Membership(NamedTuple):
    kind: MembershipKind
    id: str
    name: str


class Seen(msgspec.Struct, frozen=True):
    """A VM's memberships, of which there is at least one, and the cluster in which it had them."""

    vm: str
    cluster: str
    cluster_name: str
    member_of: tuple[Membership, ...]


class LostMembership(msgspec.Struct, frozen=True):
    """One membership that a VM had in a cluster which it left; names as they were then."""

    vm: str
    vm_name: str
    cluster: str
    cluster_name: str
    kind: MembershipKind
    id: str
    name: str
    #: When that was noticed, in seconds since the epoch, by the database's clock.
    since: float = 0.0
    #: Whether the engine's log says so.
    reported: bool = False


class MembershipChange(msgspec.Struct, frozen=True):
    """What one look at the engine found."""

    #: Memberships of VMs that have others now than are remembered.
    seen: tuple[Seen, ...] = ()
    #: VMs without any membership now.
    without: tuple[str, ...] = ()
    lost: tuple[LostMembership, ...] = ()
    regained: tuple[LostMembership, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.seen or self.without or self.lost or self.regained)


class MembershipStore(StoreAccess):
    """The memberships of one engine's VMs, in a database."""

    def seen(self) -> dict[str, Seen]:
        """What was last seen of each VM that is a member of anything."""
        with self._reading() as rows:
            return {seen.vm: seen for seen in rows.records(Seen, rows.select(memberships))}

    def lost(self) -> tuple[LostMembership, ...]:
        """What was lost and not regained or forgotten since, the oldest first."""
        order = (lost_memberships.c.since, *lost_memberships.primary_key)
        with self._reading() as rows:
            return rows.records(LostMembership, rows.select(lost_memberships).order_by(*order))

    def change(self, change: MembershipChange) -> None:
        """Write down what a look found, all of it or nothing."""
        if change.empty:
            return
        with self._leading() as rows:
            rows.remove_all(memberships.c.vm, [*change.without, *(seen.vm for seen in change.seen)])
            rows.add_all(memberships, [msgspec.to_builtins(seen) for seen in change.seen])
            table = lost_memberships.c
            for one in (*change.regained, *change.lost):
                here = (table.vm == one.vm, table.kind == one.kind.value, table.name == one.name)
                rows.remove(lost_memberships, *here)
            since = rows.now()
            rows.add_all(
                lost_memberships, [{**msgspec.to_builtins(one), "since": since} for one in change.lost]
            )

    def mark_reported(self, vm: str, since: float) -> None:
        """Remember that the engine's log says what a VM lost at this moment or before."""
        with self._leading() as rows:
            table = lost_memberships
            rows.change(table, table.c.vm == vm, table.c.since <= since, reported=True)

    def forget_lost(self, vm: str) -> None:
        """Drop what a VM has lost: a user has dismissed it."""
        with self._transaction() as rows:
            rows.remove(lost_memberships, lost_memberships.c.vm == vm)
