"""Makes the store's tables, and brings those of an earlier release up to this one's."""

from __future__ import annotations

import secrets

from sqlalchemy import Connection, insert, inspect, select, update

from ovirt_placement.store.schema import VERSION, key_revision, metadata, schema_version

#: The first version with placement keys.
_WITH_KEYS = 2

#: No two stores begin with the same one, lest one that is made anew pass for the former.
_FIRST_REVISIONS = 2**30


def is_made(connection: Connection) -> bool:
    return inspect(connection).has_table(schema_version.name)


def version(connection: Connection) -> int:
    """Return the version of a store that is made."""
    return int(connection.execute(select(schema_version.c.version)).scalar_one())


def make_or_upgrade(connection: Connection) -> None:
    """Make what is missing, within a transaction that keeps others from doing so at the same time."""
    if not is_made(connection):
        schema_version.create(connection)
        connection.execute(insert(schema_version).values(version=0))
    found = version(connection)
    if found >= VERSION:
        return
    # Each version has added tables to the one before.
    metadata.create_all(connection)
    if found < _WITH_KEYS:
        connection.execute(insert(key_revision).values(revision=secrets.randbelow(_FIRST_REVISIONS)))
    connection.execute(update(schema_version).values(version=VERSION))
