"""The words of the engine's enumerations, each with the number that its database holds and sorts by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Words: TypeAlias = Mapping[str, int]


def _numbered(listed: str, first: int = 0) -> Words:
    """Number words as they stand; `-` leaves a number out."""
    return {word: number for number, word in enumerate(listed.split(), first) if word != "-"}


VM_STATUS = _numbered(
    "unassigned down up poweringup - paused migratingfrom migratingto unknown notresponding waitforlaunch "
    "rebootinprogress savingstate restoringstate suspended imageillegal imagelocked poweringdown",
    first=-1,
)
HOST_STATUS = _numbered(
    "unassigned down maintenance up nonresponsive error installing installfailed reboot "
    "preparingformaintenance nonoperational pendingapproval initializing connecting installingos kdumping"
)
DATA_CENTER_STATUS = _numbered("uninitialized up maintenance notoperational nonresponsive contend")
STORAGE_STATUS = _numbered(
    "unknown uninitialized unattached active inactive locked maintenance preparingformaintenance detaching "
    "activating"
)
STORAGE_SHARED_STATUS = _numbered("unattached active inactive mixed")
STORAGE_TYPE = _numbered(
    "unknown nfs fcp iscsi localfs - posixfs glusterfs glance cinder managed_block_storage unmanaged"
)
EXTERNAL_STATUS = _numbered("ok info warning error failure")
HOST_TYPE = _numbered("rhel - rhevh")
ARCHITECTURE = _numbered("undefined x86_64 ppc64 ppc x86 ppc64le ppcle s390x")
POOL_TYPE = _numbered("automatic manual")
VM_TYPE = _numbered("desktop server highperformance")
BIOS_TYPE = _numbered("i440fx_sea_bios q35_sea_bios q35_ovmf q35_secure_boot", first=1)
TEMPLATE_STATUS = _numbered("ok locked illegal")
IMAGE_STATUS = _numbered("unassigned ok locked - illegal")
DISK_TYPE = _numbered("image lun cinder managed_block_storage kubernetes")
DISK_CONTENT = _numbered(
    "data ovf_store memory_dump_volume memory_metadata_volume iso hosted_engine hosted_engine_sanlock "
    "hosted_engine_metadata hosted_engine_configuration backup_scratch"
)
VOLUME_TYPE = _numbered("unassigned preallocated sparse")
PROVIDER_TYPE = _numbered(
    "foreman openstack_network openstack_image openstack_volume vmware external_network kvm xen kubevirt"
)
GLUSTER_TYPE = _numbered(
    "distribute replicate distributed_replicate stripe distributed_stripe striped_replicate "
    "distributed_striped_replicate disperse distributed_disperse tier unknown"
)
GLUSTER_TRANSPORT = _numbered("tcp rdma")
GLUSTER_STATUS = _numbered("up down warning unknown")
SEVERITY: Words = {"normal": 0, "warning": 1, "error": 2, "alert": 10}
FLAG: Words = {"false": 0, "true": 1}
