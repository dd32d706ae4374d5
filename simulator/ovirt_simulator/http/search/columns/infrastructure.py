"""What is known of clusters, data centers and networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ovirt_placement.model import Network
from ovirt_simulator.core.entities import Cluster, DataCenter
from ovirt_simulator.http.search.columns.column import ARCHITECTURE, Columns, always, name, nothing, word
from ovirt_simulator.http.search.columns.lookup import Lookup
from ovirt_simulator.http.search.records import NetworkOfCluster

_CPU_TYPE = "Intel Skylake Server Family"


def cluster(_: Lookup) -> Columns:
    columns: dict[str, Callable[[Cluster], Any]] = {
        "NAME": name,
        "DESCRIPTION": lambda cluster: cluster.description,
        "COMMENT": lambda cluster: cluster.comment,
        "ARCHITECTURE": always(ARCHITECTURE),
        "COMPATIBILITY_LEVEL": lambda cluster: cluster.compatibility,
        "CPU_TYPE": always(_CPU_TYPE),
    }
    return columns


def data_center(state: Lookup) -> Columns:
    columns: dict[str, Callable[[DataCenter], Any]] = {
        "NAME": name,
        "DESCRIPTION": lambda data_center: data_center.description,
        "COMMENT": lambda data_center: data_center.comment,
        "LOCAL": lambda data_center: data_center.local_storage,
        "STATUS": lambda data_center: word(data_center.status),
        "COMPATIBILITY_VERSION": lambda data_center: data_center.compatibility,
    }
    return columns


def network(state: Lookup) -> Columns:
    columns: dict[str, Callable[[Network], Any]] = {
        "NAME": name,
        "DESCRIPTION": nothing,
        "COMMENT": nothing,
        "DATACENTER": lambda _: state.first_data_center(),
        "MTU": always(0),
        "STP": always(False),
        "VMNETWORK": always(True),
    }
    return columns


def cluster_network(_: Lookup) -> Columns:
    columns: dict[str, Callable[[NetworkOfCluster], Any]] = {
        "NETWORK_NAME": lambda one: one.network,
        "CLUSTER_NAME": lambda one: one.cluster,
    }
    return columns
