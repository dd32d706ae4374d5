"""Templates, and disks as the engine's storage has them: of a size, and of no content."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import asdict, replace

from .entities import Record, Vm
from .video import PLAIN_MB

BLANK_TEMPLATE = "00000000-0000-0000-0000-000000000000"

#: Of the template Blank, and of those that the state file knows by their ids alone.
_MEMORY_MB = 1024
#: Of disks that the state file knows by their ids alone, in bytes.
_DISK_SIZE = 10 << 30


class DiskImage(Record, frozen=True):
    """A disk, attached to a VM or template or to none; one that can be shared to several VMs."""

    id: str
    name: str
    description: str = ""
    #: In bytes.
    size: int = _DISK_SIZE
    #: cow or raw.
    format: str = "cow"
    sparse: bool = True
    #: Of one that no VM has; else what the VM has of it counts.
    profile: str | None = None
    #: Whether several VMs may have it.
    shareable: bool = False
    wipe_after_delete: bool = False
    #: The ids of the storage domains that it is on; without any, it is on the master of its data center.
    domains: tuple[str, ...] = ()


class DiskEdit(Record, frozen=True):
    """What a client says of a disk; what is None stays as it is, or is as usual."""

    name: str | None = None
    description: str | None = None
    #: In bytes.
    size: int | None = None
    format: str | None = None
    sparse: bool | None = None
    profile: str | None = None
    shareable: bool | None = None
    wipe_after_delete: bool | None = None
    #: The ids of storage domains.
    domains: tuple[str, ...] | None = None

    def applied(self, disk: DiskImage) -> DiskImage:
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return replace(disk, **given)


class Template(Record, frozen=True):
    """What VMs are made from: `vm` is what they all begin as, its disks those that theirs are copies of."""

    id: str
    name: str
    vm: Vm
    description: str = ""
    created: datetime | None = None
    #: The id of the first of its versions; None for that one.
    base: str | None = None
    version: int = 1
    version_name: str | None = "base version"


def plain_template(template_id: str, name: str) -> Template:
    """Give the template Blank, or one of which nothing is known but its id."""
    vm = Vm(
        id=template_id,
        name=name,
        cluster="",
        host=None,
        status="down",
        memory_mb=_MEMORY_MB,
        guaranteed_mb=_MEMORY_MB,
        usage_mem_percent=None,
        usage_cpu_percent=None,
        vcpus=1,
        video_mb=PLAIN_MB,
        ha=False,
        migratable=True,
        hosted_engine=False,
    )
    return Template(id=template_id, name=name, vm=vm)


def template_of(vm: Vm, template_id: str, name: str) -> Vm:
    """Give what others begin as that are made like this VM, whether it runs or not; without devices."""
    return replace(
        vm,
        id=template_id,
        name=name,
        host=None,
        status="down",
        status_detail=None,
        migrating_to=None,
        handed_over=False,
        migration_progress=0,
        template=None,
        pool=None,
        disks=(),
        nics=(),
        tags=(),
        owner=None,
        pinned_hosts=(),
        started=None,
        stopped=None,
        stop_reason=None,
    )
