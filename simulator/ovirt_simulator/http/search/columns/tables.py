"""The columns of each object; a field that is not among them is empty everywhere.

Empty are what only a guest agent reports (ip, fqdn, address, apps, loggedinuser), departments, labels,
and the like: as in an engine that has nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable

from ovirt_simulator.core.queries import Queries
from ovirt_simulator.http.search.columns import infrastructure, machines, people, storage
from ovirt_simulator.http.search.columns.column import Columns
from ovirt_simulator.http.search.columns.lookup import Lookup

_TABLES: dict[str, Callable[[Lookup], Columns]] = {
    "VM": machines.vm,
    "VNIC": machines.vnic,
    "HOST": machines.host,
    "TEMPLATE": machines.template,
    "POOL": machines.pool,
    "INSTANCETYPE": machines.instance_type,
    "CLUSTER": infrastructure.cluster,
    "DATACENTER": infrastructure.data_center,
    "NETWORK": infrastructure.network,
    "CLUSTER_NETWORK": infrastructure.cluster_network,
    "DISK": storage.disk,
    "STORAGE": storage.storage,
    "USER": people.user,
    "GROUP": people.group,
    "EVENT": people.event,
    "JOB": people.job,
}


def columns(object_name: str, queries: Queries) -> Columns:
    """Give how to read the fields of an object from its record."""
    make = _TABLES.get(object_name)
    return {} if make is None else make(Lookup(queries))
