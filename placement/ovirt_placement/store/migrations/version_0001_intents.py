"""Version 1: intents, and the number that says which version this is."""

from __future__ import annotations

from sqlalchemy import Column, Connection, Float, Integer, MetaData, String, Table, Text, insert

_metadata = MetaData()

_schema_version = Table("schema_version", _metadata, Column("version", Integer, nullable=False))

Table(
    "intents",
    _metadata,
    Column("id", Integer, primary_key=True),
    Column("vm", String, nullable=False, index=True),
    Column("cluster", String, nullable=False),
    Column("source", String),
    Column("target", String, nullable=False),
    Column("memory_mb", Integer),
    Column("correlation_id", String, nullable=False, unique=True),
    Column("state", String, nullable=False, index=True),
    Column("created", Float(53), nullable=False),
    Column("updated", Float(53), nullable=False),
    Column("error", Text),
)


def migrate(connection: Connection) -> None:
    _metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(_schema_version).values(version=1))
