"""Which affinity groups the running VMs break, in words."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import group_name, host_name, vm_name
from ovirt_placement.rules.violations import Location, Violation


def row(violation: Violation, cluster: str, snapshot: Snapshot) -> tuple[str, str, str, str]:
    """A broken rule in words: the cluster, what it asks, the groups that ask it, where its members are."""
    groups = "\n".join(group_name(group, snapshot) for group in violation.groups)
    members = "\n".join(_member(snapshot, violation, at) for at in violation.locations)
    return snapshot.cluster_by_id[cluster].name, _asked(violation), groups, members


def sentence(violation: Violation, snapshot: Snapshot) -> str:
    """A broken rule in one line; VMs that stand wrong have a *."""
    groups = ", ".join(group_name(group, snapshot) for group in violation.groups)
    members = ", ".join(_member(snapshot, violation, at) for at in violation.locations)
    return f"{groups} asks for its VMs {_asked(violation)}: {members}"


def _asked(violation: Violation) -> str:
    constraint = violation.constraint
    strength = "hard" if constraint.hard else f"soft, priority {constraint.priority:g}"
    return f"{constraint.asks} ({strength})"


def _member(snapshot: Snapshot, violation: Violation, at: Location) -> str:
    mark = " *" if at.vm in violation.offenders else ""
    state = "" if at.host_up else " (not up)"
    return f"{vm_name(at.vm, snapshot)} on {host_name(at.host, snapshot)}{state}{mark}"
