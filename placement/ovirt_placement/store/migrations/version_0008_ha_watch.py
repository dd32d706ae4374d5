"""Version 8: what was said of HA reservations."""

from __future__ import annotations

from sqlalchemy import JSON, Boolean, Column, Connection, Float, Integer, MetaData, String, Table

_metadata = MetaData()

Table(
    "ha_announcements",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("cluster", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("facts", JSON, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("told", Boolean, nullable=False),
    sqlite_with_rowid=False,
)


def migrate(connection: Connection) -> None:
    _metadata.create_all(connection, checkfirst=False)
