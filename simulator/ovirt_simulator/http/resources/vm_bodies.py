"""What the body of a PUT says of a VM, as the engine maps it; the rest is read past."""

from __future__ import annotations

from typing import Any

from ovirt_simulator.core.vms import VmEdit
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.resources.find import host_id

_MIB = 1 << 20


def vm_edit(call: Call, body: Body) -> VmEdit:
    """Read a VM. Whatever the body has not stays as it is."""
    availability, policy = _child(body, "high_availability"), _child(body, "memory_policy")
    return VmEdit(
        name=body.text("name"),
        description=body.text("description"),
        ha=availability.boolean("enabled"),
        ha_priority=availability.integer("priority"),
        memory_mb=_megabytes(body, "memory"),
        guaranteed_mb=_megabytes(policy, "guaranteed"),
        custom_properties=_custom_properties(body),
        **_placement(call, body.child("placement_policy")),
    )


def _child(body: Body, tag: str) -> Body:
    """Give a child; one that is absent says nothing."""
    return body.child(tag) or Body.parse(f"<{tag}/>".encode(), tag)


def _megabytes(body: Body, tag: str) -> int | None:
    octets = body.integer(tag)
    return None if octets is None else octets // _MIB


def _custom_properties(body: Body) -> dict[str, str] | None:
    given = body.child("custom_properties")
    if given is None:
        return None
    return {each.text("name") or "": each.text("value") or "" for each in given.children("custom_property")}


def _placement(call: Call, policy: Body | None) -> dict[str, Any]:
    """Read a placement policy, which without hosts has none; the state file knows of its affinity little."""
    if policy is None:
        return {}
    affinity, hosts = policy.text("affinity"), policy.child("hosts")
    named = [] if hosts is None else [host_id(call, host) for host in hosts.children("host")]
    return {
        "migratable": None if affinity is None else affinity == "migratable",
        "pinned_hosts": tuple(host for host in named if host is not None),
    }
