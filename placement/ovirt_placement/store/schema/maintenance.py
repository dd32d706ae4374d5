"""Tables of maintenance runs and the hosts in them."""

from __future__ import annotations

from sqlalchemy import JSON, Boolean, Column, Float, Integer, String, Table, Text

from ovirt_placement.store.schema.metadata import metadata

#: Rolling maintenance of hosts of a cluster, as it was requested, and how it stands.
maintenance_runs = Table(
    "maintenance_runs",
    metadata,
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
    # The hard rules that were violated when it began.
    Column("violated", JSON, nullable=False),
    sqlite_with_rowid=False,
)

#: How far each host of a run is; a `draining` one takes no VMs. `vms` ran there before, and the `stopped` of
#: them are to be started again.
maintenance_hosts = Table(
    "maintenance_hosts",
    metadata,
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
