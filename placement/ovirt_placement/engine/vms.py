"""VMs: what they need, where they are, who may move them; what `follow` puts inside of them; whose they are.

The engine knows no owner of a VM: it is found by tags and permissions, which cost look-ups of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import Flag, auto
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ovirt_placement.engine import xml
from ovirt_placement.model import Disk, Nic, Vm
from ovirt_placement.model.infrastructure import VM_STATUSES, Fields, VmStatistics
from ovirt_placement.rules.elements.resources import EXCLUSIVE
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection

#: MiB of one monitor; and of the guest's own share where its system does not multiply that.
_BASE_MB = 16
_OTHER_MB = 8
#: What QXL takes besides the guest's share, in bases.
_QXL_BASES = 4
#: How often the guest's share has the base, by the system.
_LINUX_SHARE = 2
_WINDOWS_SHARES = dict.fromkeys(("windows_10", "windows_10x64", "windows_11"), 4)
_LINUX = ("other_linux", "rhel", "rhcos", "sles", "ubuntu", "debian")
_OTHER_PROCESSORS = ("ppc64", "s390x")


def video_mb(display: xml.Element | None, system: xml.Element | None, *, hosted_engine: bool) -> int:
    """Video memory in MiB, by `<display>` and `<os>`; that of VGA where no type of device is shown.

    So it is for a headless VM: it has no device, and the engine counts one nevertheless.

    A Linux guest with QXL has one device for all monitors; the other guests, and the hosted engine's, have
    one for each, of which the engine counts one.
    """
    shown = xml.children(display, "monitors", "video_type")
    kind = xml.text(shown.get("video_type"))
    if kind != "qxl":
        return _BASE_MB
    guest = xml.text(xml.children(system, "type").get("type"))
    linux = guest.startswith(_LINUX)
    heads = xml.number(shown.get("monitors"), 1) if linux and not hosted_engine else 1
    plain = guest.endswith(_OTHER_PROCESSORS)
    times = _LINUX_SHARE if linux and not plain else _WINDOWS_SHARES.get(guest, 0)
    base = _BASE_MB * heads
    return _QXL_BASES * base + (times * base or _OTHER_MB)


_FIELDS = (
    "name", "cluster", "host", "status", "memory", "memory_policy", "cpu", "high_availability",
    "placement_policy", "origin", "custom_properties", "template", "instance_type", "quota",
    "cpu_profile", "tags", "disk_attachments", "nics", "permissions", "statistics", "start_time",
    "io", "display", "os", "cpu_pinning_policy",
)  # fmt: skip
_ARCHITECTURE = "x86_64"
_HOSTED_ENGINE = {"hosted_engine", "managed_hosted_engine"}

#: The engine's predefined roles (its 00500_insert_roles.sql) that make a person the user of a VM.
USER_ROLE = "00000000-0000-0000-0001-000000000001"
USER_VM_MANAGER = "def00006-0000-0000-0000-def000000006"


class Grant(NamedTuple):
    """A permission that makes a person the user of a VM, as the VM shows it: it may be an inherited one."""

    id: str
    #: The id of the role, one of the two above.
    role: str
    #: The id of the user or group.
    holder: str


class FoundVm(NamedTuple):
    """A VM without its owner, and the permissions that may name one."""

    vm: Vm
    grants: tuple[Grant, ...] = ()

    @property
    def id(self) -> str:
        return self.vm.id


def parse_vms(content: bytes) -> tuple[FoundVm, ...]:
    """Read `/vms`; with `follow=statistics,tags,nics,disk_attachments.disk,permissions` also those.

    Raises `UserError` if the engine hides from this user where VMs run.
    """
    return tuple(_found(element) for element in xml.elements(content, "vm"))


def _found(element: xml.Element) -> FoundVm:
    fields = xml.children(element, *_FIELDS)
    if "placement_policy" not in fields:
        raise UserError(
            "the engine hides from this user where its VMs run: give it the role ReadOnlyAdmin on the system"
        )
    policy = xml.children(fields["placement_policy"], "affinity", "hosts")
    status = xml.text(fields.get("status"))
    host = xml.reference(fields.get("host"))
    memory_mb = xml.mebibytes(fields.get("memory"))
    hosted_engine = xml.text(fields.get("origin")) in _HOSTED_ENGINE
    cpu = xml.children(fields.get("cpu"), "topology", "architecture", "mode")
    topology = xml.children(cpu.get("topology"), "sockets", "cores", "threads")
    architecture = xml.text(cpu.get("architecture"), _ARCHITECTURE)
    started = xml.moment(fields.get("start_time"))
    pinning = xml.text(fields.get("cpu_pinning_policy"), "none")
    limits = xml.children(fields.get("memory_policy"), "guaranteed", "max")
    limits_mb = {name: xml.mebibytes(limit) for name, limit in limits.items()}
    measured = _statistics(fields["statistics"]) if "statistics" in fields and host else VmStatistics()
    protection = xml.children(fields.get("high_availability"), "enabled", "priority")
    vm = Vm(
        id=xml.identity(element),
        name=xml.text(fields.get("name")),
        cluster=xml.reference(fields.get("cluster")) or "",
        host=host,
        # The engine leaves out a status that its API has no word for.
        status=status if status in VM_STATUSES else "unassigned",
        memory_mb=memory_mb,
        guaranteed_mb=limits_mb.get("guaranteed", memory_mb),
        usage_mem_percent=measured.usage_mem_percent,
        usage_cpu_percent=measured.usage_cpu_percent,
        vcpus=xml.product(*map(topology.get, ("sockets", "cores", "threads"))),
        ha=xml.flag(protection.get("enabled")),
        ha_priority=xml.number(protection.get("priority"), 1),
        migratable=xml.text(policy.get("affinity")) == "migratable",
        hosted_engine=hosted_engine,
        running_since=started.timestamp() if host and started else None,
        pinned_hosts=xml.references(policy.get("hosts")),
        threads_per_core=max(1, xml.number(topology.get("threads"), 1)),
        cpu_sockets=max(1, xml.number(topology.get("sockets"), 1)) if pinning in EXCLUSIVE else 1,
        cpu_pinning=pinning,
        host_passthrough=xml.text(cpu.get("mode")) == "host_passthrough",
        io_threads=xml.number(xml.children(fields.get("io"), "threads").get("threads"), 1),
        video_mb=video_mb(fields.get("display"), fields.get("os"), hosted_engine=hosted_engine),
        architecture=architecture,
        max_memory_mb=limits_mb.get("max", memory_mb) if architecture.startswith("ppc") else None,
        tags=tags(fields.get("tags")),
        custom_properties=xml.properties(fields.get("custom_properties")),
        template=xml.reference(fields.get("template")),
        instance_type=xml.reference(fields.get("instance_type")),
        quota=xml.reference(fields.get("quota")),
        cpu_profile=xml.reference(fields.get("cpu_profile")),
        disks=tuple(_disks(fields.get("disk_attachments"))),
        nics=tuple(_nics(fields.get("nics"))),
    )
    return FoundVm(vm, _grants(fields.get("permissions")))


def tags(element: xml.Element | None) -> tuple[str, ...]:
    """Read the names of tags; absent, there are none."""
    entries = () if element is None else element.iterchildren("tag")
    return tuple(xml.text(entry.find("name")) for entry in entries)


def _disks(element: xml.Element | None) -> Iterator[Disk]:
    """Read disk attachments; the profile is there where the disk itself was followed."""
    for entry in () if element is None else element.iterchildren("disk_attachment"):
        fields = xml.children(entry, "bootable", "disk")
        disk, bootable = fields.get("disk"), xml.flag(fields.get("bootable"))
        profile = xml.reference(xml.children(disk, "disk_profile").get("disk_profile"))
        yield Disk(id=xml.reference(disk) or xml.identity(entry), bootable=bootable, profile=profile)


def _nics(element: xml.Element | None) -> Iterator[Nic]:
    for entry in () if element is None else element.iterchildren("nic"):
        fields = xml.children(entry, "name", "vnic_profile")
        name, profile = xml.text(fields.get("name")), xml.reference(fields.get("vnic_profile"))
        yield Nic(id=xml.identity(entry), name=name, vnic_profile=profile)


def _statistics(element: xml.Element) -> VmStatistics:
    """Take what a running VM uses; one that is down shows 0, so ask only for those that are on a host."""
    data = read_data(element)
    installed = data.get("memory.installed", 0.0)
    return VmStatistics(
        usage_mem_percent=_percent(100 * data.get("memory.used", 0.0) / installed) if installed else None,
        usage_cpu_percent=_percent(data["cpu.current.total"]) if "cpu.current.total" in data else None,
    )


def _grants(element: xml.Element | None) -> tuple[Grant, ...]:
    """Read those permissions of a VM that make a person its user; absent, there are none."""
    found = []
    for entry in () if element is None else element.iterchildren("permission"):
        fields = xml.children(entry, "role", "user", "group")
        role = xml.reference(fields.get("role")) or ""
        holder = xml.reference(fields.get("user", fields.get("group")))
        if role in {USER_ROLE, USER_VM_MANAGER} and holder is not None:
            found.append(Grant(xml.identity(entry), role, holder))
    return tuple(found)


def _percent(value: float) -> float:
    """Round away what dividing bytes by bytes adds to the engine's whole percents."""
    return round(min(100.0, max(0.0, value)), 2)


def read_data(element: xml.Element) -> dict[str, float]:
    """Map each statistic's name to its newest number; those that are text are left out."""
    found = {}
    for entry in element.iterchildren("statistic"):
        fields = xml.children(entry, "name", "values")
        value = xml.children(fields.get("values"), "value").get("value")
        datum = xml.children(value, "datum").get("datum")
        if datum is not None and datum.text:
            found[xml.text(fields.get("name"))] = xml.decimal(datum)
    return found


#: What stands after it in the name of a VM's tag is the owner, with or without permissions.
OWNER_TAG = "pk-customer-"
_NOTHING: frozenset[str] = frozenset()


class Detail(Flag):
    """What to read of VMs besides themselves."""

    DISKS = auto()
    NICS = auto()
    OWNER = auto()  # and the tags, which may name one


NO_DETAILS = Detail(0)
ALL_DETAILS = ~NO_DETAILS

_FOLLOWED = {
    Detail.DISKS: ("disk_attachments.disk",),
    Detail.NICS: ("nics",),
    Detail.OWNER: ("tags", "permissions"),
}


def followed(details: Detail) -> tuple[str, ...]:
    """Name what the engine must follow from VMs for these."""
    return tuple(name for detail, names in _FOLLOWED.items() if detail in details for name in names)


class VmDetails(Fields, frozen=True, gc=False):
    """The details of one VM; what was not read is empty."""

    disks: tuple[Disk, ...] = ()
    nics: tuple[Nic, ...] = ()
    tags: tuple[str, ...] = ()
    owner: str | None = None

    def only(self, wanted: Detail) -> VmDetails:
        """Leave out what is not wanted."""
        return VmDetails(
            self.disks if Detail.DISKS in wanted else (),
            self.nics if Detail.NICS in wanted else (),
            self.tags if Detail.OWNER in wanted else (),
            self.owner if Detail.OWNER in wanted else None,
        )


def owner(tags: Iterable[str], grants: Collection[Grant]) -> str | None:
    """Say to whom a VM with these tags and permissions of its own belongs; None if that is not one.

    A tag names the owner. Else it is the holder of UserVmManager, and without one, of UserRole.
    """
    named = {tag.removeprefix(OWNER_TAG) for tag in tags if tag.startswith(OWNER_TAG)}
    managers, mere_users = (
        {grant.holder for grant in grants if grant.role == role} for role in (USER_VM_MANAGER, USER_ROLE)
    )
    claims = named or managers or mere_users
    return claims.pop() if len(claims) == 1 else None


def with_owners(
    connection: EngineConnection, found: Iterable[FoundVm], inherited: frozenset[str] = _NOTHING
) -> tuple[Vm, ...]:
    """Return VMs with their owners; `inherited` are ids of permissions that were known before as inherited.

    Costs one request if there is a permission to judge.
    """
    found = tuple(found)
    if any(one.grants for one in found):
        inherited |= inherited_permissions(connection)
    return tuple(
        replace(vm, owner=owner(vm.tags, [grant for grant in grants if grant.id not in inherited]))
        if vm.tags or grants
        else vm
        for vm, grants in found
    )


def inherited_permissions(connection: EngineConnection) -> frozenset[str]:
    """Read the ids of all permissions that VMs inherit."""

    def parse(content: bytes) -> frozenset[str]:
        return frozenset(map(xml.identity, xml.root(content).iter("permission")))

    return connection.read("/clusters", parse, follow="permissions")
