"""The CPU type of a cluster: its architecture, and what becomes of it when the cluster is upgraded."""

from __future__ import annotations

from msgspec.structs import replace

from . import cpu_types
from .cpu_types import CpuType
from .entities import Cluster
from .state import State


def cpu_architecture(cluster: Cluster) -> str:
    """Give the architecture of a cluster's CPU type; without one, undefined."""
    found = cpu_types.find(cluster.cpu_type, cluster.compatibility)
    return "undefined" if found is None else found.architecture


def upgraded(state: State, before: Cluster, after: Cluster) -> Cluster:
    """Give a cluster whose version changes another CPU type, if the old or the new one ends with that.

    Source: UpdateClusterCommand.reDetectDefaultsForDeprecatedCPUs.
    """
    known = [cpu_types.find(each.cpu_type, after.compatibility) for each in (before, after)]
    if before.compatibility == after.compatibility or not after.cpu_type or None not in known:
        return after
    new = _detected(state, before, after) or known[1] or _lowest(before, after)
    return replace(after, cpu_type=new.name)


def _detected(state: State, before: Cluster, after: Cluster) -> CpuType | None:
    """Give what the hosts that are up have, if it is of the old make."""
    found, vendor = cpu_types.of_hosts(after.compatibility), _vendor(before)
    running = any(host.up for host in state.hosts_of(after.id))
    return found if running and vendor in (None, found.vendor) else None


def _lowest(before: Cluster, after: Cluster) -> CpuType:
    """Give the first type of the old make, or of all."""
    known, vendor = cpu_types.of_version(after.compatibility), _vendor(before)
    return next((each for each in known if each.vendor == vendor), known[0])


def _vendor(before: Cluster) -> str | None:
    found = cpu_types.find(before.cpu_type, before.compatibility)
    return None if found is None else found.vendor
