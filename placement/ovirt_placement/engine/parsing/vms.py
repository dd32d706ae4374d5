"""VMs: what they need, where they are, and who may move them."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ovirt_placement.engine.parsing import xml
from ovirt_placement.engine.parsing.devices import disks, nics, tags
from ovirt_placement.engine.parsing.statistics import of_vm
from ovirt_placement.engine.parsing.users import Grant, grants
from ovirt_placement.model import Vm
from ovirt_placement.model.statistics import VmStatistics
from ovirt_placement.model.statuses import VM_STATUSES
from ovirt_service.errors import UserError

_FIELDS = (
    "name", "cluster", "host", "status", "memory", "memory_policy", "cpu", "high_availability",
    "placement_policy", "origin", "custom_properties", "template", "instance_type", "quota",
    "cpu_profile", "tags", "disk_attachments", "nics", "permissions", "statistics", "start_time",
)  # fmt: skip
_HOSTED_ENGINE = {"hosted_engine", "managed_hosted_engine"}


class FoundVm(NamedTuple):
    """A VM without its owner, and the permissions that may tell of one."""

    vm: Vm
    grants: tuple[Grant, ...] = ()

    @property
    def id(self) -> str:
        return self.vm.id


def read(content: bytes) -> tuple[FoundVm, ...]:
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
    measured = of_vm(fields["statistics"]) if "statistics" in fields and host else VmStatistics()
    vm = Vm(
        id=xml.identity(element),
        name=xml.text(fields.get("name")),
        cluster=xml.reference(fields.get("cluster")) or "",
        host=host,
        # The engine leaves out a status that its API has no word for.
        status=status if status in VM_STATUSES else "unassigned",
        memory_mb=memory_mb,
        guaranteed_mb=_guaranteed(fields.get("memory_policy"), memory_mb),
        usage_mem_percent=measured.usage_mem_percent,
        usage_cpu_percent=measured.usage_cpu_percent,
        vcpus=_vcpus(fields.get("cpu")),
        ha=xml.flag(xml.children(fields.get("high_availability"), "enabled").get("enabled")),
        migratable=xml.text(policy.get("affinity")) == "migratable",
        hosted_engine=xml.text(fields.get("origin")) in _HOSTED_ENGINE,
        running_since=_moment(fields.get("start_time")) if host else None,
        pinned_hosts=xml.references(policy.get("hosts"), "host"),
        tags=tags(fields.get("tags")),
        custom_properties=_custom_properties(fields.get("custom_properties")),
        template=xml.reference(fields.get("template")),
        instance_type=xml.reference(fields.get("instance_type")),
        quota=xml.reference(fields.get("quota")),
        cpu_profile=xml.reference(fields.get("cpu_profile")),
        disks=disks(fields.get("disk_attachments")),
        nics=nics(fields.get("nics")),
    )
    return FoundVm(vm, grants(fields.get("permissions")))


def _guaranteed(memory_policy: xml.Element | None, memory_mb: int) -> int:
    guaranteed = xml.children(memory_policy, "guaranteed").get("guaranteed")
    return memory_mb if guaranteed is None else xml.mebibytes(guaranteed)


def _moment(element: xml.Element | None) -> float | None:
    """Turn a time with its offset into seconds since the epoch; None for what is none."""
    try:
        return datetime.fromisoformat(xml.text(element)).timestamp()
    except (ValueError, OverflowError):
        return None


def _vcpus(cpu: xml.Element | None) -> int:
    topology = xml.children(cpu, "topology").get("topology")
    fields = xml.children(topology, "sockets", "cores", "threads")
    return xml.product(fields.get("sockets"), fields.get("cores"), fields.get("threads"))


def _custom_properties(element: xml.Element | None) -> dict[str, str]:
    found = {}
    for entry in () if element is None else element.iterchildren("custom_property"):
        fields = xml.children(entry, "name", "value")
        found[xml.text(fields.get("name"))] = xml.text(fields.get("value"))
    return found
