"""Clusters: themselves, their affinity groups, permissions and networks."""

from __future__ import annotations

from ovirt_simulator.core.affinity_commands import Members
from ovirt_simulator.http.resources import (
    affinity_groups,
    assigned_permissions,
    cluster_networks,
    clusters,
    permissions,
)
from ovirt_simulator.http.routes.table import Table

_GROUP = "/clusters/<cluster_id>/affinitygroups/<group_id>"

TABLE = Table(
    lists={
        "/clusters": ("clusters", clusters.list_clusters),
        "/clusters/<cluster_id>/affinitygroups": ("affinity_groups", affinity_groups.list_groups),
        f"{_GROUP}/vms": ("vms", affinity_groups.list_vms),
        f"{_GROUP}/hosts": ("hosts", affinity_groups.list_hosts),
        f"{_GROUP}/vmlabels": (
            "affinity_labels",
            affinity_groups.list_vm_labels,
        ),
        f"{_GROUP}/hostlabels": (
            "affinity_labels",
            affinity_groups.list_host_labels,
        ),
        "/clusters/<cluster_id>/permissions": ("permissions", assigned_permissions.list_of_cluster),
        "/clusters/<cluster_id>/networks": ("networks", cluster_networks.list_all),
    },
    reads={
        "/clusters/<cluster_id>/networks/<network_id>": cluster_networks.get,
        "/clusters/<cluster_id>": clusters.get_cluster,
        _GROUP: affinity_groups.get_group,
        "/clusters/<cluster_id>/permissions/<permission_id>": assigned_permissions.get_of_cluster,
    },
    posts={
        "/clusters/<cluster_id>/networks": cluster_networks.post,
        "/clusters/<cluster_id>/affinitygroups": affinity_groups.post_group,
        f"{_GROUP}/vms": affinity_groups.post_vm,
        f"{_GROUP}/hosts": affinity_groups.post_host,
        f"{_GROUP}/vmlabels": affinity_groups.post_vm_label,
        f"{_GROUP}/hostlabels": affinity_groups.post_host_label,
        "/clusters/<cluster_id>/permissions": assigned_permissions.post_to_cluster,
        "/clusters": clusters.post_cluster,
        "/clusters/<cluster_id>/upgrade": clusters.upgrade,
    },
    puts={
        "/clusters/<cluster_id>/networks/<network_id>": cluster_networks.put,
        "/clusters/<cluster_id>": clusters.put_cluster,
        _GROUP: affinity_groups.put_group,
    },
    deletes={
        "/clusters/<cluster_id>": clusters.delete_cluster,
        "/clusters/<cluster_id>/networks/<network_id>": cluster_networks.delete,
        _GROUP: affinity_groups.delete_group,
        f"{_GROUP}/vms/<member_id>": affinity_groups.delete_member(Members.VMS),
        f"{_GROUP}/hosts/<member_id>": affinity_groups.delete_member(Members.HOSTS),
        f"{_GROUP}/vmlabels/<member_id>": affinity_groups.delete_member(Members.VM_LABELS),
        f"{_GROUP}/hostlabels/<member_id>": affinity_groups.delete_member(Members.HOST_LABELS),
        "/clusters/<cluster_id>/permissions/<permission_id>": permissions.delete,
    },
)
