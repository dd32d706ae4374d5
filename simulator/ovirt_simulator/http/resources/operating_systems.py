"""The operating systems that VMs can be said to have."""

from __future__ import annotations

from ovirt_simulator.http.call import Call
from ovirt_simulator.http.markup import text
from ovirt_simulator.http.operating_systems import OPERATING_SYSTEMS
from ovirt_simulator.http.resources.find import present

_ARCHITECTURES = ("ppc64", "s390x")


def list_all(call: Call) -> list[str]:
    return [_render(call, name, number) for name, number in OPERATING_SYSTEMS.items()]


def get(call: Call, system_id: str) -> str:
    names = {str(number): name for name, number in OPERATING_SYSTEMS.items()}
    return _render(call, present(names.get(system_id)), int(system_id))


def _render(call: Call, name: str, number: int) -> str:
    architecture = next((word for word in _ARCHITECTURES if name.endswith(f"_{word}")), "x86_64")
    links = call.links("operatingsystems", str(number))
    return links.entity(
        "operating_system",
        str(number),
        text("name", name),
        text("architecture", architecture),
    )
