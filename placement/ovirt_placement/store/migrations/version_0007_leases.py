"""Version 7: who leads, which plans were made, what held steps back, and what each migration brought."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    text,
)

_metadata = MetaData()

Table(
    "leases",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("owner", String, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("seconds", Float(53), nullable=False),
    Column("expires", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

Table(
    "plans",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("cluster", String, nullable=False),
    Column("epoch", Integer),
    Column("document", JSON, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("updated", Float(53), nullable=False),
    Index("ix_plans_engine_updated", "engine", "updated"),
)

Table(
    "held_steps",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("plan", String, primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("gate", String, primary_key=True),
    Column("reason", Text, nullable=False),
    Column("times", Integer, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("updated", Float(53), nullable=False),
)

_INTENTS = (
    "ALTER TABLE intents ADD COLUMN plan VARCHAR",
    "ALTER TABLE intents ADD COLUMN step INTEGER",
    "ALTER TABLE intents ADD COLUMN outcome JSON",
    "ALTER TABLE intents ADD COLUMN circumstances VARCHAR",
    "CREATE INDEX ix_intents_engine_plan ON intents (engine, plan)",
)


def migrate(connection: Connection) -> None:
    _metadata.create_all(connection, checkfirst=False)
    for statement in _INTENTS:
        connection.execute(text(statement))
