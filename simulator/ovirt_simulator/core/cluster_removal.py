"""Whether a cluster can go, and what goes with it.

Source: the engine's RemoveClusterCommand.
"""

from __future__ import annotations

from .entities import Cluster
from .rejections import ErrorType, Message, Rejected
from .state import State

_TEXTS = {
    "VDS_CANNOT_REMOVE_CLUSTER_VDS_DETECTED": "Cluster contains one or more Hosts",
    "VM_CANNOT_REMOVE_CLUSTER_VMS_DETECTED": "One or more VMs are still assigned to the Cluster",
    "VMT_CANNOT_REMOVE_CLUSTER_VMTS_DETECTED": "One or more Template(s) are still associated with the"
    " Host Cluster",
}


def check(state: State, cluster: Cluster) -> None:
    """Refuse the removal of a cluster in which something is, for all that is in it."""
    inhabited = {
        "VDS_CANNOT_REMOVE_CLUSTER_VDS_DETECTED": {host.cluster for host in state.hosts.values()},
        "VM_CANNOT_REMOVE_CLUSTER_VMS_DETECTED": {vm.cluster for vm in state.vms.values()},
        "VMT_CANNOT_REMOVE_CLUSTER_VMTS_DETECTED": {each.vm.cluster for each in state.templates.values()},
    }
    messages = [
        Message(key, f"Cannot remove Host Cluster. {_TEXTS[key]}", ErrorType.CONFLICT)
        for key, clusters in inhabited.items()
        if cluster.id in clusters
    ]
    if messages:
        raise Rejected(*messages)


def remove(state: State, cluster: Cluster) -> None:
    """Forget a cluster, its affinity groups and the permissions on it."""
    for group in state.groups_of(cluster.id):
        state.drop(state.groups, group.id)
    for permission in tuple(state.permissions.values()):
        if permission.cluster == cluster.id:
            state.drop(state.permissions, permission.id)
    state.drop(state.clusters, cluster.id)
