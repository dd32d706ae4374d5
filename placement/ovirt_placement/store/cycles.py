"""Remembers the last cycle of an engine's enforcer, with what it leaves alone for now, for those who asks."""

from __future__ import annotations

from typing import Any

import msgspec

from ovirt_placement.store.access import StoreAccess
from ovirt_placement.store.clock import now
from ovirt_placement.store.schema import cycles


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
        fields = msgspec.to_builtins(cycle)
        with self._leading() as rows:
            values = {**fields, "ended": now()}
            rows.execute(rows.insert_or_update(cycles, values, values))

    def last(self) -> LastCycle | None:
        """Return the cycle that ended last; None if none did."""
        age = (now() - cycles.c.ended).label("age_seconds")
        columns = (cycles.c.epoch, cycles.c.error, cycles.c.breakers, cycles.c.refusals, cycles.c.ended, age)
        with self._reading() as rows:
            row: Any = rows.execute(rows.select(cycles, *columns)).one_or_none()
        if row is None:
            return None
        # The driver's names are no plain texts.
        return msgspec.convert({str(name): value for name, value in row._asdict().items()}, LastCycle)
