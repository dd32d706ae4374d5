"""Who of several enforcers of an engine may act: a lease that one holds for a while, numbered by its epoch.

The process that takes it gets the next epoch, and what is written under an epoch (`fencing`) is written
while that epoch lasts, or not at all: a process that was stopped, and wakes when another has taken over,
writes nothing. All times are the database's.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import msgspec
from sqlalchemy import ColumnElement, or_

from ovirt_placement.store.sql.access import StoreAccess, lasts, now
from ovirt_placement.store.sql.schema import leases

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
