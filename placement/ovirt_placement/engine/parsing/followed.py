"""What `follow` puts inside of VMs and hosts: tags, disks, network interfaces and statistics."""

from __future__ import annotations

import re

from ovirt_placement.engine.parsing import xml
from ovirt_placement.model import Disk, Nic
from ovirt_placement.model.statistics import HostStatistics, VmStatistics


def tags(element: xml.Element | None) -> tuple[str, ...]:
    """Read the names of tags; absent, there are none."""
    entries = () if element is None else element.iterchildren("tag")
    return tuple(xml.text(xml.children(entry, "name").get("name")) for entry in entries)


def disks(element: xml.Element | None) -> tuple[Disk, ...]:
    """Read disk attachments; the profile is there where the disk itself was followed."""
    found = []
    for entry in () if element is None else element.iterchildren("disk_attachment"):
        fields = xml.children(entry, "bootable", "disk")
        profile = xml.children(fields.get("disk"), "disk_profile").get("disk_profile")
        found.append(
            Disk(
                id=xml.reference(fields.get("disk")) or xml.identity(entry),
                bootable=xml.flag(fields.get("bootable")),
                profile=xml.reference(profile),
            )
        )
    return tuple(found)


def nics(element: xml.Element | None) -> tuple[Nic, ...]:
    found = []
    for entry in () if element is None else element.iterchildren("nic"):
        fields = xml.children(entry, "name", "vnic_profile")
        found.append(
            Nic(
                id=xml.identity(entry),
                name=xml.text(fields.get("name")),
                vnic_profile=xml.reference(fields.get("vnic_profile")),
            )
        )
    return tuple(found)


_HUGE_PAGES = re.compile(r"hugepages\.(\d{1,9})\.free")


def of_host(element: xml.Element) -> HostStatistics:
    """Take user and system time as what is used, as the engine does.

    A host that has reported nothing shows 0 everywhere, which no running host does. The load average is what
    the host's own system counts, of all its CPUs together, although the engine calls its unit percent.
    """
    data = _data(element)
    user, system = data.get("cpu.current.user", 0.0), data.get("cpu.current.system", 0.0)
    known = user or system or data.get("cpu.current.idle", 0.0)
    free = data.get("memory.free", 0.0)
    load, swap = data.get("cpu.load.avg.5m"), data.get("swap.free")
    return HostStatistics(
        cpu_percent=min(100.0, user + system) if known else None,
        memory_free_mb=int(free) // (1024 * 1024) if known or free else None,
        load_average_5m=load if known or load else None,
        swap_free_mb=int(swap) // (1024 * 1024) if swap is not None and known else None,
        free_huge_pages=_free_huge_pages(data),
        measured=True,
    )


def of_vm(element: xml.Element) -> VmStatistics:
    """Take what a running VM uses; one that is down shows 0, so ask only for those that are on a host."""
    data = _data(element)
    installed = data.get("memory.installed", 0.0)
    return VmStatistics(
        usage_mem_percent=_percent(100 * data.get("memory.used", 0.0) / installed) if installed else None,
        usage_cpu_percent=_percent(data["cpu.current.total"]) if "cpu.current.total" in data else None,
    )


def _free_huge_pages(data: dict[str, float]) -> dict[int, int]:
    """How many are free, by their size in KiB: `hugepages.2048.free`."""
    shown = ((_HUGE_PAGES.fullmatch(name), count) for name, count in data.items())
    return {int(found[1]): int(count) for found, count in shown if found is not None and count}


def _percent(value: float) -> float:
    """Round away what dividing bytes by bytes adds to the engine's whole percents."""
    return round(min(100.0, max(0.0, value)), 2)


def _data(element: xml.Element) -> dict[str, float]:
    """Map each statistic's name to its newest number; those that are text are left out."""
    found = {}
    for entry in element.iterchildren("statistic"):
        fields = xml.children(entry, "name", "values")
        value = xml.children(fields.get("values"), "value").get("value")
        datum = xml.children(value, "datum").get("datum")
        if datum is not None and datum.text:
            found[xml.text(fields.get("name"))] = xml.decimal(datum)
    return found
