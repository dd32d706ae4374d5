"""The MAC pool, which all clusters share."""

from __future__ import annotations

from ovirt_simulator.http.call import Call
from ovirt_simulator.http.mac_pool import FIRST, LAST, MAC_POOL
from ovirt_simulator.http.markup import element, text
from ovirt_simulator.http.resources.find import present


def list_all(call: Call) -> list[str]:
    return [get(call, MAC_POOL)]


def get(call: Call, pool_id: str) -> str:
    links = call.links("macpools", present(MAC_POOL if pool_id == MAC_POOL else None))
    return links.entity(
        "mac_pool",
        MAC_POOL,
        text("name", "Default"),
        text("description", "Default MAC pool"),
        links.link("permissions", "permissions"),
        text("allow_duplicates", False),
        text("default_pool", True),
        element("ranges", element("range", text("from", FIRST), text("to", LAST))),
    )
