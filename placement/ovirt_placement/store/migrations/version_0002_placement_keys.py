"""Version 2: placement keys, what VMs are remembered by, and a revision that shows each change of them."""

from __future__ import annotations

import secrets

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    insert,
)

#: No two stores begin with the same revision, so that one that is made again is not taken for the former.
_FIRST_REVISIONS = 2**30

_metadata = MetaData()

Table(
    "placement_keys",
    _metadata,
    Column("level", String, primary_key=True),
    Column("resource", String, primary_key=True),
    Column("class", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("value", JSON, nullable=False),
    Column("weight", Float(53)),
    Column("sticky", Boolean, nullable=False),
    Column("set_by", String, nullable=False),
    Column("set_at", Float(53), nullable=False),
)

Table(
    "frozen_keys",
    _metadata,
    Column("vm", String, primary_key=True),
    Column("keys", JSON, nullable=False),
    Column("started", Float(53)),
    Column("recorded", Float(53), nullable=False),
)

Table(
    "sticky_copies",
    _metadata,
    Column("vm", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("value", Float(53), nullable=False),
    Column("weight", Float(53), nullable=False),
)

_key_revision = Table("key_revision", _metadata, Column("revision", Integer, nullable=False))


def migrate(connection: Connection) -> None:
    _metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(_key_revision).values(revision=secrets.randbelow(_FIRST_REVISIONS)))
