"""What the body of a POST or PUT says of a VM, as the engine maps it; the rest is read past."""

from __future__ import annotations

from typing import Any

from ovirt_simulator.core.vm_edit import VmEdit
from ovirt_simulator.http import kept
from ovirt_simulator.http.answers import fault
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.resources import particulars
from ovirt_simulator.http.resources.find import host_id, named

_MIB = 1 << 20
_TYPES = ("desktop", "server", "high_performance")


def vm_edit(call: Call, body: Body) -> VmEdit:
    """Read a VM. Whatever the body has not stays as it is, or as the template has it."""
    return VmEdit(
        name=body.text("name"),
        description=body.text("description"),
        comment=body.text("comment"),
        ha=_child(body, "high_availability").boolean("enabled"),
        ha_priority=_child(body, "high_availability").integer("priority"),
        memory_mb=_megabytes(body, "memory"),
        io_threads=_child(body, "io").integer("threads"),
        custom_properties=_custom_properties(body),
        cpu_profile=body.child_id("cpu_profile"),
        quota=_reference(body, "quota"),
        instance_type=_instance_type(call, body),
        type=_type(body),
        os=_child(body, "os").text("type"),
        console=_child(body, "console").boolean("enabled"),
        soundcard=body.boolean("soundcard_enabled"),
        initialization=_initialization(body),
        lease=_lease(body),
        delete_protected=body.boolean("delete_protected"),
        others=particulars.given(body, kept.OF_VMS),
        **_memory_policy(_child(body, "memory_policy")),
        **_cpu(_child(body, "cpu")),
        **_placement(call, body.child("placement_policy")),
    )


def _child(body: Body, tag: str) -> Body:
    """Give a child; one that is absent says nothing."""
    return body.child(tag) or Body.parse(f"<{tag}/>".encode(), tag)


def _megabytes(body: Body, tag: str) -> int | None:
    octets = body.integer(tag)
    return None if octets is None else octets // _MIB


def _memory_policy(policy: Body) -> dict[str, Any]:
    return {
        "guaranteed_mb": _megabytes(policy, "guaranteed"),
        "max_memory_mb": _megabytes(policy, "max"),
        "ballooning": policy.boolean("ballooning"),
    }


def _cpu(cpu: Body) -> dict[str, Any]:
    topology = _child(cpu, "topology")
    counts = {name: topology.integer(name) for name in ("sockets", "cores", "threads")}
    for name, count in counts.items():
        if count is not None and count < 1:
            raise fault(400, f"{count} is not a valid {name}", "Invalid value")
    threads = counts.pop("threads")
    return {**counts, "threads_per_core": threads, "cpu_mode": cpu.text("mode")}


def _custom_properties(body: Body) -> dict[str, str] | None:
    given = body.child("custom_properties")
    if given is None:
        return None
    return {each.text("name") or "": each.text("value") or "" for each in given.children("custom_property")}


def _reference(body: Body, tag: str) -> str | None:
    """Give the id of what a VM refers to; the empty word where it shall refer to nothing."""
    given = body.child(tag)
    return None if given is None else given.id or ""


def _instance_type(call: Call, body: Body) -> str | None:
    given = body.child("instance_type")
    if given is not None and given.id is None and given.text("name"):
        return named(given, call.queries.instance_types())
    return _reference(body, "instance_type")


def _type(body: Body) -> str | None:
    word = body.text("type")
    if word is not None and word not in _TYPES:
        raise fault(400, f"'{word}' is not a member of VmType", "Invalid Enum value")
    return word


def _lease(body: Body) -> str | None:
    """Give the id of the storage domain of the lease; the empty word where there shall be none."""
    lease = body.child("lease")
    return None if lease is None else lease.child_id("storage_domain") or ""


def _initialization(body: Body) -> str | None:
    """Keep it as it is: what a guest makes of it, no engine knows."""
    given = body.child("initialization")
    return None if given is None else "".join(given.elements().values())


def _placement(call: Call, policy: Body | None) -> dict[str, Any]:
    """Read a placement policy, which without hosts has none; the state file knows of its affinity little."""
    if policy is None:
        return {}
    affinity, hosts = policy.text("affinity"), policy.child("hosts")
    named = [] if hosts is None else [host_id(call, host) for host in hosts.children("host")]
    return {
        "migratable": None if affinity is None else affinity == "migratable",
        "immovable": affinity,
        "pinned_hosts": tuple(host for host in named if host is not None),
    }
