"""What the enforcer that leads records: its lease, cycles, violated rules, HA alerts and its settings.

Who takes the lease gets its next epoch, and what is written under an epoch is written while that lasts, or
not at all: a process that was stopped, and wakes when another has taken over, writes nothing. All times are
the database's.
"""

import sqlite3
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec
from sqlalchemy import ColumnElement, not_, or_

from ovirt_placement.store.sql.access import StoreAccess, age, lasts, now, without_engine
from ovirt_placement.store.sql.schema import (
    cycles,
    enforcer_settings,
    ha_announcements,
    leases,
    violated_rules,
)
from ovirt_placement.store.user_actions import Act, UserActionKind, record

#: An expiry this many lengths ahead was not written by a clock that went on: the clock was set back since.
_MOST_LENGTHS_AHEAD = 2.0


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds the lease of an engine, as of the moment when this was read."""

    owner: str
    epoch: int
    #: Seconds until it expires, if it is not renewed; not more than 0, if it is free.
    left_seconds: float


class LeaseStore(StoreAccess):
    """The lease of one engine, in a database."""

    def read(self) -> Lease | None:
        """Return who holds the lease; None if no process ever did."""
        left = (leases.c.expires - now()).label("left_seconds")
        with self._reading() as rows:
            query = rows.select(leases, leases.c.owner, leases.c.epoch, left, leases.c.seconds)
            row = rows.execute(query).one_or_none()
        if row is None:
            return None
        believable = row.left_seconds <= _MOST_LENGTHS_AHEAD * row.seconds
        return Lease(owner=row.owner, epoch=row.epoch, left_seconds=row.left_seconds if believable else 0.0)

    def leader(self) -> Lease | None:
        """Return the lease of who leads now; None if no process does."""
        lease = self.read()
        return lease if lease is not None and lease.left_seconds > 0 else None

    def take_lease(self, owner: str, seconds: float) -> int | None:
        """Take a lease that is free, or one's own; return its epoch, or None if another holds it."""
        mine = {"owner": owner, "seconds": seconds, "expires": now() + seconds}
        with self._transaction() as rows:
            taking = rows.insert_or_update(
                leases,
                {**mine, "epoch": 1},
                {**mine, "epoch": leases.c.epoch + 1},
                where=or_(free(), leases.c.owner == owner),
            )
            if rows.execute(taking.execution_options(preserve_rowcount=True)).rowcount != 1:
                return None
            return int(rows.execute(rows.select(leases, leases.c.epoch)).scalar_one())

    def renew(self, epoch: int, seconds: float) -> bool:
        """Hold the lease for so long from now on; False if the epoch is over, even if no other followed."""
        with self._transaction() as rows:
            return rows.change(leases, *lasts(epoch), seconds=seconds, expires=now() + seconds) == 1

    def release(self, epoch: int) -> None:
        """Let the next one take the lease at once, unless another has taken it already."""
        with self._transaction() as rows:
            rows.change(leases, leases.c.epoch == epoch, expires=0.0)


def last_owner(path: Path, engine: str) -> str | None:
    """Return who held the lease of an engine when SQLite last put all into the one file of a store.

    Reads without the files that SQLite makes for a reader, where no room is left for them. None if no
    process is known to have held it.
    """
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as database:
            row = database.execute("SELECT owner FROM leases WHERE engine = ?", (engine,)).fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else str(row[0])


def free() -> ColumnElement[bool]:
    """The condition that the lease may be taken."""
    return or_(leases.c.expires <= now(), leases.c.expires > now() + _MOST_LENGTHS_AHEAD * leases.c.seconds)


class OpenBreaker(msgspec.Struct, frozen=True):
    """A cluster in which nothing is migrated for a while, since migrations failed there."""

    cluster: str
    reason: str


class RememberedRefusal(msgspec.Struct, frozen=True):
    """A VM that is not sent to a host for now, or to none where no host is named."""

    vm: str
    host: str | None
    reason: str


class Cycle(msgspec.Struct, frozen=True, kw_only=True):
    """A cycle that has ended. What it left alone is that of the last cycle that looked at the engine."""

    #: Of the lease under which it ran.
    epoch: int
    #: Why it failed; None if it did not.
    error: str | None
    breakers: tuple[OpenBreaker, ...] = ()
    refusals: tuple[RememberedRefusal, ...] = ()


class LastCycle(Cycle, frozen=True, kw_only=True):
    """The same, with when it ended."""

    #: Seconds since the epoch, by the database's clock; and how many seconds ago that is.
    ended: float
    age_seconds: float


class CycleStore(StoreAccess):
    """The last cycle of one engine's enforcer, in a database."""

    def record(self, cycle: Cycle) -> None:
        """Write down a cycle in place of the one before. It is the leader's: raises `LeaseLost`."""
        with self._leading() as rows:
            rows.put(cycles, {}, {**msgspec.to_builtins(cycle), "ended": now()})

    def last(self) -> LastCycle | None:
        """Return the cycle that ended last; None if none did."""
        with self._reading() as rows:
            found = rows.records(LastCycle, rows.select(cycles, *cycles.columns, age(cycles.c.ended)))
        return found[0] if found else None


# -- Records in how many cycles each rule was violated: what is repaired soon needs no migration.
#: Two looks that are so much of a cycle apart are of two cycles: no look comes at the second.
_NEARLY = 0.9


class ViolatedRuleStore(StoreAccess):
    """The violated rules of one engine's clusters, in a database; rules are known by keys."""

    def record_violated(
        self, cluster: str, rules: Collection[str], *, cycle_seconds: float, enough: int
    ) -> None:
        """Write down which rules of a cluster are violated now, and forget those that are not.

        A look counts for a rule if the last that did is about a cycle ago, and until there were `enough`.
        Raises `LeaseLost` if there is anything to write, this is to be a leader's, and is not.
        """
        table = violated_rules.c
        if not rules:
            with self._reading() as rows:
                if rows.execute(rows.select(violated_rules).where(table.cluster == cluster)).first() is None:
                    return
        with self._leading() as rows:
            present = rows.select(violated_rules, table.rule).where(table.cluster == cluster)
            known = set(rows.execute(present).scalars())
            rows.remove_all(table.rule, sorted(known.difference(rules)), table.cluster == cluster)
            if known:
                due = table.counted <= now() - _NEARLY * cycle_seconds
                here = (table.cluster == cluster, table.cycles < enough, due)
                rows.change(violated_rules, *here, cycles=table.cycles + 1, counted=now())
            for new in sorted(set(rules) - known):
                rows.put(violated_rules, {"cluster": cluster, "rule": new}, {"cycles": 1, "counted": now()})

    def cycles(self) -> dict[str, int]:
        """Return in how many cycles each rule that is violated was seen so, by its key."""
        with self._reading() as rows:
            found = rows.execute(rows.select(violated_rules, violated_rules.c.rule, violated_rules.c.cycles))
            return {row.rule: row.cycles for row in found}


# -- Remembers what was said of HA reservations, so that it is said once, by any process.
#: What is settled is kept for so long: longer than the enforcer looks back.
_KEPT_SECONDS: Final = 2 * 24 * 3600.0


class Announcement(msgspec.Struct, frozen=True):
    """Something that is to be said of a cluster's HA reservation, or was."""

    #: Of the engine's event, which the engine takes once, for ever.
    number: int
    cluster: str
    kind: str
    #: What sentences are made of.
    facts: Mapping[str, str]
    #: How long ago it was written down, by the database's clock.
    age_seconds: float
    #: Whether all who are to hear it have heard it.
    reported: bool


class HaAnnouncementStore(StoreAccess):
    """The announcements about one engine's clusters, in a database."""

    def announcements(self) -> tuple[Announcement, ...]:
        """All that are remembered, the oldest first; it is the leader's: raises `LeaseLost`.

        A process that led before must not see what the next leader writes: it would send that, too.
        """
        table = ha_announcements.c
        columns = (*without_engine(ha_announcements), age(table.created))
        with self._leading() as rows:
            query = rows.select(ha_announcements, *columns).order_by(table.created, table.number)
            return rows.records(Announcement, query)

    def announce(
        self, *, number: int, cluster: str, kind: str, facts: Mapping[str, str], settles: bool
    ) -> None:
        """Write down what is to be said; one that `settles` makes what was said long before it of no use."""
        table = ha_announcements.c
        with self._leading() as rows:
            values = {"number": number, "cluster": cluster, "kind": kind, "facts": dict(facts)}
            rows.add(ha_announcements, {**values, "created": now(), "reported": False})
            if settles:
                rows.remove(ha_announcements, table.cluster == cluster, table.created < now() - _KEPT_SECONDS)

    def mark_reported(self, number: int) -> None:
        """Remember that all who are to hear it have heard it."""
        with self._leading() as rows:
            rows.change(ha_announcements, ha_announcements.c.number == number, reported=True)


# -- Remembers the settings with which the enforcer leads; where they have changed, that is an action as well.
#: Who edited the file is not known: it is the service's doing.
_LOGIN: Final = "ovirt-enforcer"
#: Of a list that takes more characters, only the entries are named that the other one lacks.
_WHOLE: Final = 200
#: No more than these of each list.
_NAMED: Final = 10


class EnforcerSettingsStore(StoreAccess):
    """The settings of one engine's enforcer, in a database."""

    def record(self, epoch: int, settings: Mapping[str, Any]) -> None:
        """Write down the settings, by their names, of the process that leads in an epoch of the lease.

        What differs from those before is recorded as an action. It is the leader's: raises `LeaseLost`.
        """
        with self._leading() as rows:
            before = rows.execute(rows.select(enforcer_settings)).one_or_none()
            if before is not None and (changes := differences(settings, "before", before.settings)):
                record(rows, Act(kind=UserActionKind.SETTINGS, login=_LOGIN, details=changes))
            rows.put(enforcer_settings, {}, {"epoch": epoch, "settings": dict(settings)})

    def leader_settings(self) -> Mapping[str, Any] | None:
        """Return the settings of the process that leads; None if none does, or if they are not known."""
        with self._reading() as rows:
            lease = rows.select(leases, leases.c.epoch).where(not_(free())).scalar_subquery()
            column = enforcer_settings.c.settings
            query = rows.select(enforcer_settings, column).where(enforcer_settings.c.epoch == lease)
            settings: Mapping[str, Any] | None = rows.execute(query).scalar_one_or_none()
            return settings


def differences(settings: Mapping[str, Any], word: str, others: Mapping[str, Any]) -> tuple[str, ...]:
    """What differs, such as "mode enforce, before observe", where `word` says when or where others hold.

    A setting that only one of them has is not set in the other.
    """
    pairs = ((name, settings.get(name), others.get(name)) for name in sorted({*settings, *others}))
    return tuple(f"{name} {_listed(a, b)}, {word} {_listed(b, a)}" for name, a, b in pairs if a != b)


def _listed(value: Any, other: Any) -> str:
    """A setting; of a long list how many entries it has, with some of those that the other one lacks."""
    text = _text(value)
    if not isinstance(value, list) or len(text) <= _WHOLE:
        return text
    known = set(map(_text, other or ()))
    alone = [entry for entry in map(_text, value) if entry not in known]
    named = ", ".join(alone[:_NAMED])
    if len(alone) > _NAMED:
        named += f" and {len(alone) - _NAMED:,} more"
    return f"{len(value):,} entries" + (f" (with {named})" if alone else "")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value or "empty"
    return "not set" if value is None else msgspec.json.encode(value).decode()
