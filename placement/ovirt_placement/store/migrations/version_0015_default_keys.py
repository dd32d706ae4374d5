"""Version 15: the special keys that setup gave clusters."""

from __future__ import annotations

from sqlalchemy import Column, Connection, Float, MetaData, String, Table

_metadata = MetaData()

Table(
    "default_keys",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("cluster", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("weight", Float(53), nullable=False),
    Column("policy", String, nullable=False),
    sqlite_with_rowid=False,
)


def migrate(connection: Connection) -> None:
    _metadata.create_all(connection, checkfirst=False)
