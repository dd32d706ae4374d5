"""Hosts: what they are, how much memory is left, and how their processors are made up."""

from __future__ import annotations

import re

from ovirt_placement.engine.parsing import xml
from ovirt_placement.engine.parsing.vms import read_data, tags
from ovirt_placement.model import Host
from ovirt_placement.model.infrastructure import HOST_STATUSES, HostStatistics

_FIELDS = (
    "name", "cluster", "status", "memory", "max_scheduling_memory", "cpu", "tags", "statistics", "spm",
)  # fmt: skip

_NO_SPM = "none"


def read(content: bytes) -> tuple[Host, ...]:
    """Read `/hosts`; with `follow=statistics` also how busy they are, with `follow=tags` their tags."""
    return tuple(_host(element) for element in xml.elements(content, "host"))


def _host(element: xml.Element) -> Host:
    fields = xml.children(element, *_FIELDS)
    sockets, cores, threads = _processors(fields.get("cpu"))
    status = xml.text(fields.get("status"))
    measured = of_host(fields["statistics"]) if "statistics" in fields else HostStatistics()
    return Host(
        id=xml.identity(element),
        name=xml.text(fields.get("name")),
        cluster=xml.reference(fields.get("cluster")) or "",
        # The engine leaves out a status that its API has no word for.
        status=status if status in HOST_STATUSES else "unassigned",
        memory_mb=xml.mebibytes(fields.get("memory")),
        free_mb=xml.mebibytes(fields.get("max_scheduling_memory")),
        cpu_percent=measured.cpu_percent,
        cores=cores,
        threads=threads,
        sockets=sockets,
        memory_free_mb=measured.memory_free_mb,
        swap_free_mb=measured.swap_free_mb,
        free_huge_pages=measured.free_huge_pages,
        load_average_5m=measured.load_average_5m,
        spm=xml.text(xml.children(fields.get("spm"), "status").get("status"), _NO_SPM) != _NO_SPM,
        tags=tags(fields.get("tags")),
        measured=measured.measured,
    )


def _processors(cpu: xml.Element | None) -> tuple[int, int, int | None]:
    """Count sockets, cores and threads of the whole host; before its first contact there is no topology."""
    topology = xml.children(cpu, "topology").get("topology")
    if topology is None:
        return 1, 0, None
    fields = xml.children(topology, "sockets", "cores", "threads")
    cores = fields.get("sockets"), fields.get("cores")
    sockets = max(1, xml.number(fields.get("sockets"), 1))
    return sockets, xml.product(*cores), xml.product(*cores, fields.get("threads"))


_HUGE_PAGES = re.compile(r"hugepages\.(\d{1,9})\.free")


def of_host(element: xml.Element) -> HostStatistics:
    """Take user and system time as what is used, as the engine does.

    A host that has reported nothing shows 0 everywhere, which no running host does. The load average is what
    the host's own system counts, of all its CPUs together, although the engine calls its unit percent.
    """
    data = read_data(element)
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


def _free_huge_pages(data: dict[str, float]) -> dict[int, int]:
    """How many are free, by their size in KiB: `hugepages.2048.free`."""
    shown = ((_HUGE_PAGES.fullmatch(name), count) for name, count in data.items())
    return {int(found[1]): int(count) for found, count in shown if found is not None and count}
