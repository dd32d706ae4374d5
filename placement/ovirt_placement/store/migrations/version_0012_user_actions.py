"""Version 12: what people did, and who."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Connection, Float, Index, Integer, MetaData, String, Table, Text

_metadata = MetaData()

Table(
    "user_actions",
    _metadata,
    Column("id", Integer, primary_key=True),
    Column("engine", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("login", String, nullable=False),
    Column("machine", String, nullable=False),
    Column("engine_user", String),
    Column("cluster", String, nullable=False),
    Column("cluster_name", String, nullable=False),
    Column("plan", String),
    Column("subject", Text, nullable=False),
    Column("details", JSON, nullable=False),
    Column("state", String, nullable=False),
    Column("error", Text),
    Column("created", Float(53), nullable=False),
    Column("updated", Float(53), nullable=False),
    Column("logged", String, nullable=False),
    Index("ix_user_actions_engine_updated", "engine", "updated"),
)


def migrate(connection: Connection) -> None:
    _metadata.create_all(connection, checkfirst=False)
