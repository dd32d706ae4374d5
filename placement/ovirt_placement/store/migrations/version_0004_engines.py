"""Version 4: every row belongs to an engine, so that several share a store; what is there is `default`'s.

SQLite cannot change the primary key of a table, nor add a column without a default, which would take in rows
of who forgot to name the engine. So each table is made again; there those with a key are kept by it, so
that the rows of an engine lie together.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    column,
    insert,
    literal,
    select,
    table,
    text,
)

_FORMER_ENGINE = "default"

_metadata = MetaData()

_placement_keys = Table(
    "placement_keys",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("level", String, primary_key=True),
    Column("resource", String, primary_key=True),
    Column("class", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("value", JSON, nullable=False),
    Column("weight", Float(53)),
    Column("sticky", Boolean, nullable=False),
    Column("set_by", String, nullable=False),
    Column("set_at", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

_frozen_keys = Table(
    "frozen_keys",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("vm", String, primary_key=True),
    Column("keys", JSON, nullable=False),
    Column("started", Float(53)),
    Column("recorded", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

_sticky_copies = Table(
    "sticky_copies",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("vm", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("value", Float(53), nullable=False),
    Column("weight", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

_key_revision = Table(
    "key_revision",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("revision", Integer, nullable=False),
)

_missing_vms = Table(
    "missing_vms",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("vm", String, primary_key=True),
    Column("since", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

_intents = Table(
    "intents",
    _metadata,
    Column("id", Integer, primary_key=True),
    Column("engine", String, nullable=False),
    Column("vm", String, nullable=False),
    Column("cluster", String, nullable=False),
    Column("source", String),
    Column("target", String, nullable=False),
    Column("memory_mb", Integer),
    Column("correlation_id", String, nullable=False, unique=True),
    Column("state", String, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("updated", Float(53), nullable=False),
    Column("error", Text),
    Index("ix_intents_engine_vm", "engine", "vm"),
    Index("ix_intents_engine_state", "engine", "state"),
)


def migrate(connection: Connection) -> None:
    for each in (_placement_keys, _frozen_keys, _sticky_copies, _key_revision, _missing_vms, _intents):
        _make_again(connection, each)
    if connection.dialect.name == "postgresql":  # the ids that came along did not count
        connection.execute(
            text("SELECT setval(pg_get_serial_sequence('intents', 'id'), max(id)) FROM intents")
        )


def _make_again(connection: Connection, wanted: Table) -> None:
    """Make a table as it is to be, with the rows that it has."""
    names = [each.name for each in wanted.columns if each.name != "engine"]
    present = table(wanted.name, *(column(name) for name in names))
    aside = Table("former_rows", MetaData(), *(Column(name, wanted.c[name].type) for name in names))
    aside.create(connection)
    connection.execute(insert(aside).from_select(names, select(present)))
    wanted.drop(connection)
    wanted.create(connection)
    connection.execute(
        insert(wanted).from_select(["engine", *names], select(literal(_FORMER_ENGINE), *aside.columns))
    )
    aside.drop(connection)
