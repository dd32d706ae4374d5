"""The unit that prefers hosts by placement rules: that violate fewer, and then emptier failure domains."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.rules.affinity.priorities import GROUP_VIOLATED_HERE, fixed_point
from ovirt_placement.rules.placement import SnapshotPlacement
from ovirt_placement.rules.placement_rules.in_force import constraints_in, constraints_of
from ovirt_placement.rules.placement_rules.kind import PlacementConstraint
from ovirt_placement.rules.ranks import ranked
from ovirt_placement.rules.reasons import Reason
from ovirt_placement.rules.rule import Rule, UnitKind
from ovirt_placement.rules.verdict import Request, Weight

#: As the engine's own weight for VM-to-host affinity: load is not to outvote rules.
_USUAL_FACTOR = 20
#: Of rules that a host would violate: whether it is hard, and its priority; the larger, the worse.
_Break = tuple[bool, int]


def rank_hosts(snapshot: Snapshot, request: Request) -> tuple[Weight, ...]:
    """Rank hosts by the rules of the requested VMs, hard and soft, with what is expected.

    The rules that a VM would violate are compared from the worst down: hard before soft, then by priority.
    Among equals, failure domains with fewer members of rules that spread them are better.
    """
    placement = SnapshotPlacement(snapshot)
    asking = [
        (rule, rule.judge(vm, placement), rule.company(vm, placement))
        for vm in request.vms
        for rule in constraints_of(snapshot, vm)
    ]
    reasons: dict[str, tuple[Reason, ...]] = {}
    burdens: dict[str, tuple[tuple[_Break, ...], int]] = {}
    for host in request.candidate_hosts if asking else ():
        violated = [rule for rule, judge, _ in asking if judge(host) is not None]
        near = sum(company(host) for _, _, company in asking)
        burdens[host] = tuple(sorted(map(_break, violated), reverse=True)), near
        reasons[host] = tuple(_said(violated))
    return ranked(snapshot, request.candidate_hosts, burdens, reasons, unburdened=((), 0))


def _break(rule: PlacementConstraint) -> _Break:
    return rule.hard, fixed_point(rule.priority)


def _said(violated: list[PlacementConstraint]) -> Iterator[Reason]:
    for rule in violated:
        yield Reason(GROUP_VIOLATED_HERE, rule.groups[0], number=rule.priority)


def soft_constraints(snapshot: Snapshot, cluster_id: str) -> Iterator[PlacementConstraint]:
    """The invariants that the soft rules of a cluster ask for."""
    return (rule for rule in constraints_in(snapshot, cluster_id) if not rule.hard)


def _asks(snapshot: Snapshot, cluster: Cluster) -> bool:
    return next(constraints_in(snapshot, cluster.id), None) is not None


RULE = Rule(
    name="PlacementRuleWeight",
    kind=UnitKind.WEIGHT,
    usual_factor=_USUAL_FACTOR,
    asked_by_cluster=_asks,
    cluster_asks="placement rules, soft or in a burst of starts, mean",
    weight=rank_hosts,
    constraints=soft_constraints,
)
