"""What compatibility version a data center can be given: none above its clusters', and seldom a lower one.

Source: the engine's UpdateStoragePoolCommand.validate and VersionStorageFormatUtil.
"""

from __future__ import annotations

from . import cluster_refusals as refusals
from . import compatibility, storage_domains
from .entities import DataCenter
from .network_commands import MANAGEMENT_NETWORK
from .state import State

#: The first version whose storage domains have the format V5, which all have here.
_PRESENT_STORAGE_FORMAT = (4, 3)


def check_changed(state: State, before: DataCenter, after: DataCenter) -> None:
    """Refuse another version that does not fit; the same one always does."""
    if after.compatibility == before.compatibility:
        return
    if after.compatibility not in compatibility.LEVELS:
        raise compatibility.unsupported("edit", "Data Center")
    if compatibility.ordered(after.compatibility) < compatibility.ordered(before.compatibility):
        _check_lower(state, after)
    else:
        _check_higher(state, after)


def _check_lower(state: State, data_center: DataCenter) -> None:
    """Refuse what storage cannot follow; and any while it has a network that no cluster is managed by."""
    domains = [each.name for each in storage_domains.all_of(state) if each.data_center == data_center.id]
    if domains and compatibility.ordered(data_center.compatibility) < _PRESENT_STORAGE_FORMAT:
        raise refusals.storage_format_downgraded(domains)
    managed = any(each.data_center == data_center.id for each in state.clusters.values())
    names = {network.name for network in state.networks.values()}
    if names and (not managed or names != {MANAGEMENT_NETWORK}):
        raise refusals.data_center_version_decreased()


def _check_higher(state: State, data_center: DataCenter) -> None:
    wanted = compatibility.ordered(data_center.compatibility)
    below = [
        cluster.name
        for cluster in state.clusters.values()
        if cluster.data_center == data_center.id and compatibility.ordered(cluster.compatibility) < wanted
    ]
    if below:
        raise refusals.data_center_above_clusters(below)
