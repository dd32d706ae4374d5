"""Remembers what was said of HA reservations, so that it is said once, by any process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ovirt_placement.store.access import StoreAccess
from ovirt_placement.store.clock import now
from ovirt_placement.store.schema import ha_announcements

#: What is settled is kept for so long: longer than anybody looks back.
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
        age = (now() - table.created).label("age_seconds")
        reported = table.reported.label("reported")
        columns = (table.number, table.cluster, table.kind, table.facts, age, reported)
        with self._leading() as rows:
            found = rows.execute(
                rows.select(ha_announcements, *columns).order_by(table.created, table.number)
            )
            return tuple(Announcement(**row._asdict()) for row in found)

    def announce(
        self, *, number: int, cluster: str, kind: str, facts: Mapping[str, str], settles: bool
    ) -> None:
        """Write down what is to be said; one that `settles` makes what was said long before it of no use."""
        table = ha_announcements.c
        with self._leading() as rows:
            values = {"number": number, "cluster": cluster, "kind": kind, "facts": dict(facts)}
            rows.execute(rows.insert(ha_announcements).values(**values, created=now(), reported=False))
            if settles:
                old = (table.cluster == cluster, table.created < now() - _KEPT_SECONDS)
                rows.execute(rows.delete(ha_announcements).where(*old))

    def renumber(self, number: int, new: int) -> None:
        """Give another number to an announcement whose own the engine has seen before."""
        with self._leading() as rows:
            table = ha_announcements
            rows.execute(rows.update(table).where(table.c.number == number).values(number=new))

    def mark_reported(self, number: int) -> None:
        """Remember that all who are to hear it have heard it."""
        with self._leading() as rows:
            table = ha_announcements
            rows.execute(rows.update(table).where(table.c.number == number).values(reported=True))
