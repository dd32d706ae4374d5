"""Which affinity groups the running VMs break, as people and programs read it."""

from __future__ import annotations

from ovirt_placement.answers.names import group_name, host_name, vm_name
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.record import Record
from ovirt_placement.rules.violations import Location, Violation


class ViolationAnswer(Record, frozen=True):
    """A broken rule as data; ids, as in the state file."""

    family: str
    positive: bool
    hard: bool
    groups: tuple[str, ...]
    priority: float
    broken: tuple[str, ...]
    locations: tuple[Location, ...]
    offenders: tuple[str, ...]


def answer(violation: Violation) -> ViolationAnswer:
    constraint = violation.constraint
    return ViolationAnswer(
        family=constraint.family,
        positive=constraint.positive,
        hard=constraint.hard,
        groups=constraint.groups,
        priority=constraint.priority,
        broken=violation.broken,
        locations=violation.locations,
        offenders=violation.offenders,
    )


def row(violation: Violation, cluster: str, snapshot: Snapshot) -> tuple[str, str, str, str]:
    """A broken rule in words: the cluster, what it asks, the groups that ask it, where its members are."""
    groups = "\n".join(group_name(group, snapshot) for group in violation.groups)
    members = "\n".join(_member(snapshot, violation, at) for at in violation.locations)
    return snapshot.cluster_by_id[cluster].name, _asked(violation), groups, members


def _asked(violation: Violation) -> str:
    constraint = violation.constraint
    strength = "hard" if constraint.hard else f"soft, priority {constraint.priority:g}"
    return f"{constraint.asks} ({strength})"


def _member(snapshot: Snapshot, violation: Violation, at: Location) -> str:
    mark = " *" if at.vm in violation.offenders else ""
    state = "" if at.host_up else " (not up)"
    return f"{vm_name(at.vm, snapshot)} on {host_name(at.host, snapshot)}{state}{mark}"
