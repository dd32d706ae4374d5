"""Version 11: what each hour was like in each cluster."""

from __future__ import annotations

from sqlalchemy import Column, Connection, Integer, MetaData, String, Table

_metadata = MetaData()

Table(
    "samples",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("cluster", String, primary_key=True),
    Column("hour", Integer, primary_key=True),
    Column("cluster_name", String),
    Column("plans", Integer, nullable=False),
    Column("done", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("hard", Integer),
    Column("soft", Integer),
    Column("ha_failures", Integer),
    Column("ha_survived", Integer),
    Column("ha_not_restarted", Integer),
    sqlite_with_rowid=False,
)


def migrate(connection: Connection) -> None:
    _metadata.create_all(connection, checkfirst=False)
