"""Version 13: rolling maintenance, and intents of other kinds than migrations."""

from __future__ import annotations

from sqlalchemy import JSON, Boolean, Column, Connection, Float, Integer, MetaData, String, Table, Text, text

_metadata = MetaData()

Table(
    "maintenance_runs",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("cluster", String, nullable=False),
    Column("cluster_name", String, nullable=False),
    Column("state", String, nullable=False),
    Column("request", JSON, nullable=False),
    Column("requested_by", String, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("updated", Float(53), nullable=False),
    Column("message", Text, nullable=False),
    Column("violated", JSON, nullable=False),
    sqlite_with_rowid=False,
)

Table(
    "maintenance_hosts",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("run", String, primary_key=True),
    Column("host", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("position", Integer, nullable=False),
    Column("phase", String, nullable=False),
    Column("since", Float(53), nullable=False),
    Column("message", Text, nullable=False),
    Column("draining", Boolean, nullable=False),
    Column("vms", JSON, nullable=False),
    Column("stopped", JSON, nullable=False),
    sqlite_with_rowid=False,
)


def migrate(connection: Connection) -> None:
    _metadata.create_all(connection, checkfirst=False)
    connection.execute(text("ALTER TABLE intents ADD COLUMN kind VARCHAR NOT NULL DEFAULT 'migrate_vm'"))
