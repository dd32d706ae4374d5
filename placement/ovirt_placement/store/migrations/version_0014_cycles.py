"""Version 14: the last cycle of an engine's enforcer."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Connection, Float, Integer, MetaData, String, Table, Text

_metadata = MetaData()

Table(
    "cycles",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("epoch", Integer, nullable=False),
    Column("ended", Float(53), nullable=False),
    Column("error", Text),
    Column("breakers", JSON, nullable=False),
    Column("refusals", JSON, nullable=False),
    sqlite_with_rowid=False,
)


def migrate(connection: Connection) -> None:
    _metadata.create_all(connection, checkfirst=False)
