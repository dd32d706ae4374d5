"""The compatibility versions of clusters, with the permits that roles are made of."""

from __future__ import annotations

from ovirt_simulator.core import cpu_types
from ovirt_simulator.core.compatibility import LEVELS
from ovirt_simulator.core.cpu_types import CpuType
from ovirt_simulator.core.permits import PERMITS
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.markup import element, entity, text
from ovirt_simulator.http.resources.find import present


def list_all(call: Call) -> list[str]:
    return [_render(call, level) for level in LEVELS]


def get(call: Call, level: str) -> str:
    return _render(call, present(level if level in LEVELS else None))


def _render(call: Call, level: str) -> str:
    permits = (
        entity(
            "permit",
            None,
            permit.id,
            text("name", permit.name),
            text("administrative", permit.administrative),
        )
        for permit in PERMITS.values()
    )
    return call.links("clusterlevels", level).entity(
        "cluster_level",
        level,
        "" if call.filtered else element("cpu_types", *map(_cpu_type, cpu_types.of_version(level))),
        element("permits", *permits),
    )


def _cpu_type(one: CpuType) -> str:
    return element(
        "cpu_type", text("architecture", one.architecture), text("level", one.level), text("name", one.name)
    )
