"""Makes a store's tables, or brings those of an earlier release up to this one's version, step by step."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, insert, inspect, select, text, update

from ovirt_placement.store.schema import metadata, schema_version

#: In their order; the first makes version 2 of version 1. None may change once it stood in a release.
MIGRATIONS: tuple[Callable[[Connection], None], ...] = ()

#: What this release reads and writes. A store with a higher one is left alone.
VERSION = 1 + len(MIGRATIONS)


def version(connection: Connection) -> int | None:
    """Return the version of the tables; None if there are none."""
    if not _has_tables(connection):
        return None
    return int(connection.execute(select(schema_version.c.version)).scalar_one())


def make_or_upgrade(connection: Connection) -> None:
    """Make all tables, or take the steps that are missing, in a transaction that keeps others out."""
    found = version(connection)
    if found is None:
        metadata.create_all(connection, checkfirst=False)
        connection.execute(insert(schema_version).values(version=VERSION))
        return
    for migrate in MIGRATIONS[found - 1 :]:
        migrate(connection)
    if found < VERSION:
        connection.execute(update(schema_version).values(version=VERSION))


def _has_tables(connection: Connection) -> bool:
    """Look at what is there now.

    SQLite's `table_info`, which `inspect` asks, answers from what a connection remembers: 3.26 misses
    a table that another process has made since. Reading from a table makes SQLite compare first.
    """
    if connection.dialect.name != "sqlite":
        return inspect(connection).has_table(schema_version.name)
    named = text("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = :name")
    return bool(connection.execute(named, {"name": schema_version.name}).scalar_one())
