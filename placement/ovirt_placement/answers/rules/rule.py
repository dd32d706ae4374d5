"""A placement rule as data: what it asks of whom, and how things stand."""

from __future__ import annotations

from collections import Counter

from ovirt_placement.model import PlacementRule, Snapshot
from ovirt_placement.model.names import Named, named_cluster, named_hosts, named_vms
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement import SnapshotPlacement
from ovirt_placement.rules.placement_rules import restart_after
from ovirt_placement.rules.placement_rules.in_force import constraints_in, is_in_force, mistakes
from ovirt_placement.rules.placement_rules.kind import PlacementConstraint
from ovirt_placement.rules.placement_rules.members import Resolved
from ovirt_placement.rules.placement_rules.restart_order import not_waiting, why_circular


class RuleDomainRecord(Record, frozen=True, omit_defaults=False):
    """A failure domain, its hosts, and how many of the VMs run there."""

    name: str
    hosts: tuple[Named, ...]
    running: int


class RuleRecord(Record, frozen=True, omit_defaults=False, kw_only=True):
    """A rule as it is written, with who it means now."""

    rule: PlacementRule
    #: Null if there is no such cluster.
    cluster: Named | None
    vms: tuple[Named, ...]
    other_vms: tuple[Named, ...]
    hosts: tuple[Named, ...]
    domains: tuple[RuleDomainRecord, ...]
    #: Whether it is satisfied; null if it is not in force.
    satisfied: bool | None
    #: VMs that violate it; of a restart order, those that the engine may restart too early.
    offenders: tuple[Named, ...]
    #: What is wrong with it, in sentences.
    problems: tuple[str, ...]


def rule_record(found: Resolved, snapshot: Snapshot) -> RuleRecord:
    """What is known of a rule in a state."""
    offenders = _offenders(found, snapshot)
    return RuleRecord(
        rule=found.rule,
        cluster=None if found.cluster is None else named_cluster(found.cluster, snapshot),
        vms=named_vms(found.vms, snapshot),
        other_vms=named_vms(found.other_vms, snapshot),
        hosts=named_hosts(sorted(found.hosts), snapshot),
        domains=_domains(found, snapshot),
        satisfied=None if offenders is None else not offenders,
        offenders=named_vms(offenders or (), snapshot),
        problems=(*mistakes(found.rule), *found.problems, *why_circular(snapshot, found.rule.id)),
    )


def _offenders(found: Resolved, snapshot: Snapshot) -> tuple[str, ...] | None:
    """VMs that violate a rule; None if it is not in force."""
    if not is_in_force(found):
        return None
    if found.rule.kind == restart_after.KIND.name:
        return not_waiting(snapshot, found)
    constraint = _constraint(found, snapshot)
    return None if constraint is None else constraint.offenders(SnapshotPlacement(snapshot))


def _constraint(found: Resolved, snapshot: Snapshot) -> PlacementConstraint | None:
    in_force = constraints_in(snapshot, found.cluster or "")
    return next((one for one in in_force if one.groups == (found.rule.id,)), None)


def _domains(found: Resolved, snapshot: Snapshot) -> tuple[RuleDomainRecord, ...]:
    hosts = [snapshot.vm_by_id[vm].host or "" for vm in found.vms]
    running = Counter(found.domain_of[host] for host in hosts if host in found.domain_of)
    return tuple(
        RuleDomainRecord(
            domain,
            named_hosts([host for host, its in found.domain_of.items() if its == domain], snapshot),
            running[domain],
        )
        for domain in dict.fromkeys(found.domain_of.values())
    )


def asked(rule: PlacementRule) -> str:
    """What a rule asks, with its numbers."""
    numbers = ("most", "least", "max_skew", "min_domains")
    given = [f"{name} {getattr(rule, name)}" for name in numbers if getattr(rule, name) is not None]
    if rule.counted != "vms":
        given.append(rule.counted)
    return f"{rule.kind} ({', '.join(given)})" if given else rule.kind


def strength(rule: PlacementRule) -> str:
    """Whether it is hard or soft, and whatever else differs from what is usual."""
    words = ["hard" if rule.enforcing else f"soft, priority {rule.priority:g}"]
    words += [] if rule.continuous else ["in the end"]
    words += [] if rule.enabled else ["disabled"]
    return ", ".join(words)
