"""What searches may ask VMs, hosts, clusters, events and the rest about, in the engine's words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from ovirt_placement.model import Network
from ovirt_simulator.core.entities import Cluster, DataCenter, Event, Host, Vm
from ovirt_simulator.core.queries import Queries
from ovirt_simulator.http.search.select import Field, Record, Searchable

#: VM statuses as the engine's backend spells them, in lower case.
_VM_STATUSES = (
    "unassigned|down|up|poweringup|paused|migratingfrom|migratingto|unknown|notresponding|waitforlaunch|"
    "rebootinprogress|savingstate|restoringstate|suspended|imageillegal|imagelocked|poweringdown"
)

#: Host statuses likewise.
_HOST_STATUSES = (
    "unassigned|down|maintenance|up|nonresponsive|error|installing|installfailed|reboot|"
    "preparingformaintenance|nonoperational|pendingapproval|initializing|connecting|installingos|kdumping"
)

_SEVERITIES = "normal|warning|error|alert"


def _named(name: Callable[[Record], str], description: Callable[[Record], str]) -> dict[str, Field[Record]]:
    return {
        "name": Field(name, free=True),
        "description": Field(description, free=True),
        "comment": Field(lambda _: "", free=True),
    }


def _words(joined: str) -> frozenset[str]:
    return frozenset(joined.split("|"))


def _backend_word(status: str) -> str:
    return status.replace("_", "")


def vms(queries: Queries) -> Searchable[Vm]:
    def cluster(vm: Vm) -> str:
        return _cluster(queries, vm.cluster).name

    def on_host(vm: Vm) -> str | None:
        host = None if vm.host is None else queries.host(vm.host)
        return None if host is None else host.name

    fields: dict[str, Field[Vm]] = {
        **_named(lambda vm: vm.name, lambda vm: vm.description),
        "id": Field(lambda vm: vm.id),
        "status": Field(lambda vm: vm.engine_status, words=_words(_VM_STATUSES)),
        "cluster": Field(cluster),
        "cluster.name": Field(cluster),
        "clusters.name": Field(cluster),
        "datacenter": Field(lambda vm: _data_center(queries, vm.cluster)),
        "on_host": Field(on_host),
        "host.name": Field(on_host),
        "hosts.name": Field(on_host),
        "tag": Field(lambda vm: vm.tags),
        "memory": Field(lambda vm: vm.memory_mb, int),
        "num_of_vcpus": Field(lambda vm: vm.vcpus, int),
        "mem_usage": Field(lambda vm: vm.usage_mem_percent, float),
        "cpu_usage": Field(lambda vm: vm.usage_cpu_percent, float),
        "migration_progress_percent": Field(lambda vm: vm.migration_progress, int),
        "quota": Field(lambda vm: vm.quota),
        "template": Field(lambda vm: vm.template),
    }
    return Searchable(fields, "name")


def hosts(queries: Queries) -> Searchable[Host]:
    def cluster(host: Host) -> str:
        return _cluster(queries, host.cluster).name

    fields: dict[str, Field[Host]] = {
        **_named(lambda host: host.name, lambda _: ""),
        "id": Field(lambda host: host.id),
        "status": Field(lambda host: _backend_word(host.status), words=_words(_HOST_STATUSES)),
        "external_status": Field(lambda host: host.external_status),
        "cluster": Field(cluster),
        "cluster.name": Field(cluster),
        "clusters.name": Field(cluster),
        "datacenter": Field(lambda host: _data_center(queries, host.cluster)),
        "address": Field(lambda host: host.address),
        "tag": Field(lambda host: host.tags),
        "memory": Field(lambda host: host.memory_mb, int),
        "cpus": Field(lambda host: host.cores, int),
        "cpu_usage": Field(lambda host: host.cpu_percent, float),
        "active_vms": Field(lambda host: queries.host_summary(host.id).active, int),
    }
    return Searchable(fields, "name")


def clusters(queries: Queries) -> Searchable[Cluster]:
    """Clusters cannot be searched by id: the engine has no such field."""
    fields: dict[str, Field[Cluster]] = {
        **_named(lambda cluster: cluster.name, lambda cluster: cluster.description),
        "compatibility_level": Field(lambda cluster: cluster.compatibility),
        "architecture": Field(lambda _: "x86_64"),
        "datacenter": Field(lambda cluster: _data_center(queries, cluster.id)),
        "datacenter.name": Field(lambda cluster: _data_center(queries, cluster.id)),
    }
    return Searchable(fields, "name")


def data_centers() -> Searchable[DataCenter]:
    fields: dict[str, Field[DataCenter]] = {
        **_named(lambda data_center: data_center.name, lambda _: ""),
        "status": Field(lambda data_center: _backend_word(data_center.status)),
        "id": Field(lambda data_center: data_center.id),
    }
    return Searchable(fields, "name")


def networks() -> Searchable[Network]:
    fields: dict[str, Field[Network]] = {
        **_named(lambda network: network.name, lambda _: ""),
        "id": Field(lambda network: network.id),
    }
    return Searchable(fields, "name")


def events() -> Searchable[Event]:
    """Events, the newest first."""
    fields: dict[str, Field[Event]] = {
        "id": Field(lambda event: event.id, int),
        "type": Field(lambda event: event.code, int),
        "severity": Field(lambda event: event.severity, words=_words(_SEVERITIES)),
        "message": Field(lambda event: event.description, free=True),
        "time": Field(lambda event: event.time, datetime),
        "usrname": Field(lambda event: None if event.user is None else event.user.name),
        "event_host": Field(lambda event: None if event.host is None else event.host.name),
        "event_vm": Field(lambda event: None if event.vm is None else event.vm.name),
        "event_datacenter": Field(
            lambda event: None if event.data_center is None else event.data_center.name
        ),
        "_event_vm_id": Field(lambda event: None if event.vm is None else event.vm.id),
        "_event_host_id": Field(lambda event: None if event.host is None else event.host.id),
        "_event_cluster_id": Field(lambda event: None if event.cluster is None else event.cluster.id),
        "correlation_id": Field(lambda event: event.correlation_id),
        "origin": Field(lambda event: event.origin),
        "custom_event_id": Field(lambda event: event.custom_id, int),
    }
    return Searchable(fields, "id", descending=True)


def _cluster(queries: Queries, cluster_id: str) -> Cluster:
    cluster = queries.cluster(cluster_id)
    if cluster is None:
        raise LookupError(f"no cluster {cluster_id!r}")
    return cluster


def _data_center(queries: Queries, cluster_id: str) -> str | None:
    data_center_id = _cluster(queries, cluster_id).data_center
    data_center = None if data_center_id is None else queries.data_center(data_center_id)
    return None if data_center is None else data_center.name
