"""Version 3: since when VMs are missing that are remembered."""

from __future__ import annotations

from sqlalchemy import Column, Connection, Float, MetaData, String, Table

_missing_vms = Table(
    "missing_vms",
    MetaData(),
    Column("vm", String, primary_key=True),
    Column("since", Float(53), nullable=False),
)


def migrate(connection: Connection) -> None:
    _missing_vms.create(connection)
