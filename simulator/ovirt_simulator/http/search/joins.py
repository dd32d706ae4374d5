"""How a search of one object reaches another: the pairs that the engine joins, and over which third one.

A join gives rows, and conditions hold within one row: hosts with `vm.name=a and vm.name=b` are none. What has
nothing to join has one row with an empty place. What the state has nothing of (pools, volumes, quotas,
providers, NICs of hosts) is always such a place. Source: `SearchObjectAutoCompleter` and
`SyntaxChecker.generateFromStatement`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeAlias

from ovirt_placement.model import Network, Nic
from ovirt_simulator.core.entities import Cluster, DataCenter, Event, Host, Reference, Vm
from ovirt_simulator.core.images import Template
from ovirt_simulator.core.queries import Queries
from ovirt_simulator.core.storage_domain import StorageDomain
from ovirt_simulator.http.search.known import Known
from ovirt_simulator.http.search.records import AttachedDisk, NetworkOfCluster, User

Join: TypeAlias = "Callable[[Any], Iterable[Any]]"

#: Pairs that are joined over a third object, which is then joined as well.
VIA = {
    ("TEMPLATE", "HOST"): "VM",
    ("TEMPLATE", "USER"): "VM",
    ("TEMPLATE", "EVENT"): "VM",
    ("HOST", "TEMPLATE"): "VM",
    ("USER", "HOST"): "VM",
    ("EVENT", "TEMPLATE"): "VM",
}


def joins(queries: Queries, known: Known) -> dict[tuple[str, str], Join]:
    """Give what leads from a record of the first object to those of the second."""
    found: dict[tuple[str, str], Join] = {}
    found |= _of_machines(queries, known)
    found |= _of_events(queries, known)
    found |= _of_clusters(queries, known)
    found |= _of_storage(queries, known)
    return found


def _one(found: Any) -> tuple[Any, ...]:
    return () if found is None else (found,)


def _index(
    records: Callable[[], Iterable[Any]], keys: Callable[[Any], Iterable[str | None]]
) -> Callable[[str], list[Any]]:
    """Give what looks records up by a key; the table is made when it is first asked."""

    @cache
    def table() -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for record in records():
            for key in keys(record):
                if key is not None:
                    found.setdefault(key, []).append(record)
        return found

    return lambda key: table().get(key, [])


def _of_machines(queries: Queries, known: Known) -> dict[tuple[str, str], Join]:
    vms_by_host = _index(queries.vms, lambda vm: [vm.host])
    vms_by_template = _index(queries.vms, lambda vm: [one.id for one in template_of(vm)])
    permissions_by_vm = _index(queries.permissions, lambda one: [one.vm])
    permissions_by_holder = _index(queries.permissions, lambda one: [one.holder])

    def host_of(vm: Vm) -> tuple[Host, ...]:
        return _one(None if vm.host is None else queries.host(vm.host))

    def users_of(vm: Vm) -> list[User]:
        return [known.user(one.holder) for one in permissions_by_vm(vm.id)]

    def vms_of_user(user: User) -> list[Vm]:
        found = (queries.vm(one.vm or "") for one in permissions_by_holder(user.id))
        return [vm for vm in found if vm is not None]

    def template_of(vm: Vm) -> tuple[Template, ...]:
        return _one(known.template(vm.template))

    def nics_of(vm: Vm) -> tuple[Nic, ...]:
        return vm.nics

    def storage_of_host(host: Host) -> list[StorageDomain]:
        return known.storage_of_cluster(host.cluster)

    return {
        ("VM", "HOST"): host_of,
        ("HOST", "VM"): lambda host: vms_by_host(host.id),
        ("VM", "USER"): users_of,
        ("USER", "VM"): vms_of_user,
        ("VM", "TEMPLATE"): template_of,
        ("TEMPLATE", "VM"): lambda template: vms_by_template(template.id),
        ("VM", "VNIC"): nics_of,
        ("VM", "STORAGE"): known.storage_of_vm,
        ("HOST", "STORAGE"): storage_of_host,
    }


def _of_events(queries: Queries, known: Known) -> dict[tuple[str, str], Join]:
    def about(part: str) -> Join:
        by_subject = _index(queries.events, lambda event: [_identity(getattr(event, part))])
        return lambda record: by_subject(record.id)

    def subject(part: str, find: Callable[[str], Any]) -> Join:
        def found(event: Event) -> tuple[Any, ...]:
            identity = _identity(getattr(event, part))
            return _one(None if identity is None else find(identity))

        return found

    return {
        ("VM", "EVENT"): about("vm"),
        ("HOST", "EVENT"): about("host"),
        ("USER", "EVENT"): about("user"),
        ("EVENT", "VM"): subject("vm", queries.vm),
        ("EVENT", "HOST"): subject("host", queries.host),
        ("EVENT", "CLUSTER"): subject("cluster", queries.cluster),
        ("EVENT", "USER"): subject("user", known.user),
    }


def _identity(subject: Reference | None) -> str | None:
    return None if subject is None else subject.id


def _of_clusters(queries: Queries, known: Known) -> dict[tuple[str, str], Join]:
    def clusters_of(data_center: DataCenter) -> list[Cluster]:
        return [cluster for cluster in queries.clusters() if cluster.data_center == data_center.id]

    def networks_of(data_center: DataCenter) -> tuple[Network, ...]:
        first = next(iter(queries.data_centers()), None)
        return queries.networks() if first == data_center else ()

    def networks_in(cluster: Cluster) -> list[NetworkOfCluster]:
        attached = queries.networks_of(cluster)
        known = (network for network in queries.networks() if network.id in attached)
        return [NetworkOfCluster(network.name, cluster.name) for network in known]

    def clusters_with(network: Network) -> list[NetworkOfCluster]:
        having = (cluster for cluster in queries.clusters() if network.id in queries.networks_of(cluster))
        return [NetworkOfCluster(network.name, cluster.name) for cluster in having]

    return {
        ("DATACENTER", "CLUSTER"): clusters_of,
        ("CLUSTER", "DATACENTER"): lambda cluster: _one(queries.data_center(cluster.data_center or "")),
        ("DATACENTER", "NETWORK"): networks_of,
        ("CLUSTER", "CLUSTER_NETWORK"): networks_in,
        ("NETWORK", "CLUSTER_NETWORK"): clusters_with,
    }


def _of_storage(queries: Queries, known: Known) -> dict[tuple[str, str], Join]:
    def storage_of(data_center: DataCenter) -> list[StorageDomain]:
        return [domain for domain in known.storage if domain.data_center == data_center.id]

    def clusters_of(domain: StorageDomain) -> list[Cluster]:
        return [cluster for cluster in queries.clusters() if cluster.data_center == domain.data_center]

    def hosts_of(domain: StorageDomain) -> list[Host]:
        clusters = {cluster.id for cluster in clusters_of(domain)}
        return [host for host in queries.hosts() if host.cluster in clusters]

    def data_centers_of(disk: AttachedDisk) -> list[DataCenter]:
        found = (queries.data_center(domain.data_center) for domain in known.storage_of_disk(disk))
        return [data_center for data_center in found if data_center is not None]

    return {
        ("DATACENTER", "STORAGE"): storage_of,
        ("CLUSTER", "STORAGE"): lambda cluster: known.storage_of_cluster(cluster.id),
        ("STORAGE", "CLUSTER"): clusters_of,
        ("STORAGE", "HOST"): hosts_of,
        ("DISK", "STORAGE"): known.storage_of_disk,
        ("DISK", "DATACENTER"): data_centers_of,
    }
