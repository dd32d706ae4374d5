"""Version 6: pauses, plans that wait for an approval, approvals, and for how long rules have been broken."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Connection, Float, Integer, MetaData, String, Table, Text

_metadata = MetaData()

Table(
    "pauses",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("cluster", String, primary_key=True),
    Column("cluster_name", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("set_by", String, nullable=False),
    Column("set_at", Float(53), nullable=False),
    Column("until", Float(53)),
    sqlite_with_rowid=False,
)

Table(
    "resumptions",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("cluster", String, primary_key=True),
    Column("set_by", String, nullable=False),
    Column("set_at", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

Table(
    "waiting_plans",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("cluster", String, primary_key=True),
    Column("plan", String, nullable=False),
    Column("moves", JSON, nullable=False),
    Column("text", Text, nullable=False),
    Column("since", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

Table(
    "approvals",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("cluster", String, primary_key=True),
    Column("plan", String, nullable=False),
    Column("moves", JSON, nullable=False),
    Column("set_by", String, nullable=False),
    Column("set_at", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

Table(
    "broken_rules",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("cluster", String, primary_key=True),
    Column("rule", String, primary_key=True),
    Column("cycles", Integer, nullable=False),
    Column("counted", Float(53), nullable=False),
    sqlite_with_rowid=False,
)


def migrate(connection: Connection) -> None:
    _metadata.create_all(connection, checkfirst=False)
