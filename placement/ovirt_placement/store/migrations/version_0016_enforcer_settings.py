"""Version 16: the settings with which the enforcer leads."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Connection, Integer, MetaData, String, Table

_metadata = MetaData()

Table(
    "enforcer_settings",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("epoch", Integer, nullable=False),
    Column("settings", JSON, nullable=False),
    sqlite_with_rowid=False,
)


def migrate(connection: Connection) -> None:
    _metadata.create_all(connection, checkfirst=False)
