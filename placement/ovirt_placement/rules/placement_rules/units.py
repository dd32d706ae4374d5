"""The units of placement rules: the filter by hard ones, and the weight."""

from collections.abc import Iterator
from functools import partial

from ovirt_placement.model import Snapshot
from ovirt_placement.model.infrastructure import fixed_point
from ovirt_placement.model.snapshot import STORED
from ovirt_placement.rules.affinity.filters import moves_with_its_peers
from ovirt_placement.rules.affinity.groups import GROUP_VIOLATED_HERE, hard_positive_group_of
from ovirt_placement.rules.elements.placement import Arriving, SnapshotPlacement
from ovirt_placement.rules.elements.ranks import ranked
from ovirt_placement.rules.elements.rule import Dependence, Rule, Scope, UnitKind
from ovirt_placement.rules.elements.verdict import NOT_KNOWN_YET, Reason, Request, Verdict, Weight, unread
from ovirt_placement.rules.placement_rules.in_force import constraints_in, constraints_of, not_known_yet
from ovirt_placement.rules.placement_rules.kind import Against, PlacementConstraint
from ovirt_placement.rules.placement_rules.limits import ExclusiveHosts, Limited


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse hosts that any hard rule of any requested VM refuses, by what is confirmed.

    Of several VMs each counts as being there for the next; a rule that draws them together is asked of all
    at once, and so it is of one where the engine moves its positive group along. A rule that is to be
    satisfied in the end lets VMs that run migrate: the enforcer repairs what that violates. A rule that is
    violated already, and would be no more so, lets a VM that runs migrate where no host is better.
    """
    asking = [(vm, tuple(_hard(snapshot, vm))) for vm in request.vms]
    clusters = sorted({vm.cluster for vm in request.known_vms(snapshot)})
    unknown = (why for cluster in clusters for why in not_known_yet(snapshot, cluster))
    late = tuple(Reason(NOT_KNOWN_YET, status=why) for why in (*unread(snapshot, STORED), *unknown))
    if not any(rules for _, rules in asking):
        return tuple(Verdict(host, accepted=True, reasons=late) for host in request.candidate_hosts)
    if len(request.vms) == 1:
        found = _verdicts(snapshot, request, *asking[0], late)
        accepted = any(one.accepted for one in found)
        return found if accepted else _verdicts(snapshot, request, *asking[0], late, migrating=True)
    return tuple(
        Verdict.of_reasons(host, (*_in_turn(snapshot, request, asking, host), *late))
        for host in request.candidate_hosts
    )


def _hard(snapshot: Snapshot, vm: str) -> Iterator[PlacementConstraint]:
    runs = vm in snapshot.vm_by_id and snapshot.vm_by_id[vm].host is not None
    return (one for one in constraints_of(snapshot, vm) if one.hard and (one.continuous or not runs))


def _verdicts(
    snapshot: Snapshot,
    request: Request,
    vm: str,
    rules: tuple[PlacementConstraint, ...],
    late: tuple[Reason, ...],
    *,
    migrating: bool = False,
) -> tuple[Verdict, ...]:
    placement = SnapshotPlacement(snapshot)
    # Peers that the engine moves with it, as one hard positive group, though it asks for that VM alone.
    unified = hard_positive_group_of(snapshot).get(vm)
    peers = () if unified is None else tuple(peer for peer in unified.vms if peer != vm)
    along = request.unconfirmed.union(peers if moves_with_its_peers(snapshot, request, peers) else ())
    judges = []
    for rule in rules:
        unknown = along if rule.positive else request.unconfirmed
        judges.append((rule, (rule.judge_step if migrating else rule.judge)(vm, placement, unknown)))

    def reasons(host: str) -> Iterator[Reason]:
        for rule, judge in judges:
            if (against := judge(host)) is not None:
                yield _reason(snapshot, rule, vm, host, against)

    return tuple(Verdict.of_reasons(host, (*reasons(host), *late)) for host in request.candidate_hosts)


def _in_turn(
    snapshot: Snapshot, request: Request, asking: list[tuple[str, tuple[PlacementConstraint, ...]]], host: str
) -> Iterator[Reason]:
    placement, whole = SnapshotPlacement(snapshot), request.unconfirmed.union(request.vms)
    for number, (vm, rules) in enumerate(asking):
        there = Arriving(placement, request.vms[:number], host)
        for rule in rules:
            against = rule.judge_step(vm, there, request.unconfirmed)(host)
            if against is not None and not (rule.positive and rule.judge(vm, placement, whole)(host) is None):
                yield _reason(snapshot, rule, vm, host, against)


def _reason(snapshot: Snapshot, rule: PlacementConstraint, vm: str, host: str, against: Against) -> Reason:
    """What speaks against a host; of the VMs that make it so, one that is only expected is named first."""
    peer = next((one for one in against.vms if one in snapshot.unconfirmed), next(iter(against.vms), vm))
    return Reason(against.kind, rule.groups[0], peer, host, number=against.number)


def _only_narrows(snapshot: Snapshot, vm: str, others: frozenset[str]) -> bool:
    """A VM that starts takes room of rules that limit; domains that must be even, others open."""
    return all(isinstance(rule, Limited | ExclusiveHosts) for rule in _hard(snapshot, vm))


def _constraints(snapshot: Snapshot, cluster_id: str, *, hard: bool) -> Iterator[PlacementConstraint]:
    return (rule for rule in constraints_in(snapshot, cluster_id) if rule.hard is hard)


#: The invariants that the hard rules of a cluster ask for.
hard_constraints = partial(_constraints, hard=True)


def _scope(snapshot: Snapshot, cluster_id: str) -> Scope:
    """Where no hard rule is in force, no start depends on another by this filter."""
    return Scope.HOST_AT_ONCE if next(hard_constraints(snapshot, cluster_id), None) is None else Scope.CLUSTER


RULE_FILTER = Rule(
    name="PlacementRuleFilter",
    kind=UnitKind.FILTER,
    asked_by=lambda snapshot, cluster: (
        "hard placement rules mean" if any(hard_constraints(snapshot, cluster.id)) else ""
    ),
    filter=filter_hosts,
    depends_on=Dependence(scope=_scope, only_narrows=_only_narrows),
    constraints=hard_constraints,
)


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
        worst_first = sorted(((rule.hard, fixed_point(rule.priority)) for rule in violated), reverse=True)
        burdens[host] = tuple(worst_first), near
        reasons[host] = tuple(
            Reason(GROUP_VIOLATED_HERE, rule.groups[0], number=rule.priority) for rule in violated
        )
    return ranked(snapshot, request.candidate_hosts, burdens, reasons, unburdened=((), 0))


_ASK_SOFT = "placement rules, soft or in a burst of starts, mean"
RULE_WEIGHT = Rule(
    name="PlacementRuleWeight",
    kind=UnitKind.WEIGHT,
    usual_factor=_USUAL_FACTOR,
    asked_by=lambda snapshot, cluster: _ASK_SOFT if any(constraints_in(snapshot, cluster.id)) else "",
    weight=rank_hosts,
    constraints=partial(_constraints, hard=False),
)
