"""VMs, and what belongs to them."""

from __future__ import annotations

from ovirt_simulator.http.resources import (
    affinity_labels,
    assigned_permissions,
    devices,
    snapshots,
    statistics,
    tags,
    vm_actions,
    vms,
)
from ovirt_simulator.http.routes.table import Table

TABLE = Table(
    lists={
        "/vms": ("vms", vms.list_vms),
        "/vms/<vm_id>/statistics": ("statistics", statistics.list_of_vm),
        "/vms/<vm_id>/permissions": ("permissions", assigned_permissions.list_of_vm),
        "/vms/<vm_id>/tags": ("tags", tags.list_of_vm),
        "/vms/<vm_id>/affinitylabels": ("affinity_labels", affinity_labels.list_of_vm),
        "/vms/<vm_id>/diskattachments": ("disk_attachments", vms.list_disk_attachments),
        "/vms/<vm_id>/nics": ("nics", vms.list_nics),
        "/vms/<vm_id>/snapshots": ("snapshots", snapshots.list_of_vm),
        "/vms/<vm_id>/snapshots/<snapshot_id>/disks": ("disks", snapshots.list_disks),
        "/vms/<vm_id>/snapshots/<snapshot_id>/nics": ("nics", snapshots.list_nics),
        "/vms/<vm_id>/snapshots/<snapshot_id>/cdroms": ("cdroms", snapshots.list_cdroms),
    },
    reads={
        "/vms/<vm_id>": vms.get_vm,
        "/vms/<vm_id>/permissions/<permission_id>": assigned_permissions.get_of_vm,
        "/vms/<vm_id>/tags/<tag_id>": tags.get_of_vm,
        "/vms/<vm_id>/statistics/<statistic_id>": statistics.get_of_vm,
        "/vms/<vm_id>/diskattachments/<disk_id>": vms.get_disk_attachment,
        "/vms/<vm_id>/nics/<nic_id>": vms.get_nic,
        "/vms/<vm_id>/snapshots/<snapshot_id>": snapshots.get_of_vm,
    },
    posts={
        "/vms/<vm_id>/start": vm_actions.start,
        "/vms/<vm_id>/stop": vm_actions.stop,
        "/vms/<vm_id>/shutdown": vm_actions.shutdown,
        "/vms/<vm_id>/suspend": vm_actions.suspend,
        "/vms/<vm_id>/reboot": vm_actions.reboot,
        "/vms/<vm_id>/reset": vm_actions.reset,
        "/vms/<vm_id>/migrate": vm_actions.migrate,
        "/vms/<vm_id>/cancelmigration": vm_actions.cancel_migration,
        "/vms/<vm_id>/affinitylabels": affinity_labels.post_to_vm,
        "/vms/<vm_id>/diskattachments": devices.post_disk_attachment,
        "/vms/<vm_id>/nics": devices.post_nic,
        "/vms/<vm_id>/permissions": assigned_permissions.post_to_vm,
        "/vms/<vm_id>/tags": tags.post_to_vm,
        "/vms": vms.post_vm,
    },
    puts={
        "/vms/<vm_id>": vms.put_vm,
        "/vms/<vm_id>/diskattachments/<disk_id>": devices.put_disk_attachment,
        "/vms/<vm_id>/nics/<nic_id>": devices.put_nic,
    },
    deletes={
        "/vms/<vm_id>": vms.delete_vm,
        "/vms/<vm_id>/affinitylabels/<label_id>": affinity_labels.delete_vm,
        "/vms/<vm_id>/diskattachments/<disk_id>": devices.delete_disk_attachment,
        "/vms/<vm_id>/nics/<nic_id>": devices.delete_nic,
        "/vms/<vm_id>/permissions/<permission_id>": assigned_permissions.delete,
        "/vms/<vm_id>/tags/<tag_id>": tags.delete_of_vm,
    },
)
