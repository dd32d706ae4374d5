"""The compatibility versions of clusters, with the permits that roles are made of."""

from __future__ import annotations

from ovirt_simulator.core.permits import PERMITS
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.markup import element, entity, text
from ovirt_simulator.http.resources.find import present

_LEVELS = ("4.2", "4.3", "4.4", "4.5", "4.6", "4.7", "4.8")
#: The only one that clusters here have.
_CPU_TYPE = (
    "<cpu_type><architecture>x86_64</architecture><level>9</level>"
    "<name>Intel Skylake Server Family</name></cpu_type>"
)


def list_all(call: Call) -> list[str]:
    return [_render(call, level) for level in _LEVELS]


def get(call: Call, level: str) -> str:
    return _render(call, present(level if level in _LEVELS else None))


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
        "" if call.filtered else element("cpu_types", _CPU_TYPE),
        element("permits", *permits),
    )
