"""Version 10: placement rules."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Connection, Float, MetaData, String, Table

_metadata = MetaData()

Table(
    "placement_rules",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("document", JSON, nullable=False),
    Column("changed_by", String, nullable=False),
    Column("changed_at", Float(53), nullable=False),
    sqlite_with_rowid=False,
)


def migrate(connection: Connection) -> None:
    _metadata.create_all(connection, checkfirst=False)
