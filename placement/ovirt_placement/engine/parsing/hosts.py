"""Hosts: what they are, how much memory is left, and how their processors are made up."""

from __future__ import annotations

from ovirt_placement.engine.parsing import xml
from ovirt_placement.engine.parsing.followed import of_host, tags
from ovirt_placement.model import Host
from ovirt_placement.model.statistics import HostStatistics
from ovirt_placement.model.statuses import HOST_STATUSES

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
