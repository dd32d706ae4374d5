"""Version 5: of which groups and labels VMs were members, and which of these they have lost."""

from __future__ import annotations

from sqlalchemy import JSON, Boolean, Column, Connection, Float, MetaData, String, Table

_metadata = MetaData()

Table(
    "memberships",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("vm", String, primary_key=True),
    Column("cluster", String, nullable=False),
    Column("cluster_name", String, nullable=False),
    Column("member_of", JSON, nullable=False),
    sqlite_with_rowid=False,
)

Table(
    "lost_memberships",
    _metadata,
    Column("engine", String, primary_key=True),
    Column("vm", String, primary_key=True),
    Column("kind", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("id", String, nullable=False),
    Column("vm_name", String, nullable=False),
    Column("cluster", String, nullable=False),
    Column("cluster_name", String, nullable=False),
    Column("since", Float(53), nullable=False),
    Column("told", Boolean, nullable=False),
    sqlite_with_rowid=False,
)


def migrate(connection: Connection) -> None:
    _metadata.create_all(connection, checkfirst=False)
