"""Every rule once: what all say of a host, what a running cluster violates, what hard ones ask of all VMs.

All readers of "the rules" ask here, and add none of their own. The hosts that all filters leave a VM are
ordered as by the engine's selector. What hard rules ask stands by itself, as forms, of VMs that run or not.
All hosts of the cluster count as up then: the question is what can be satisfied at all, and not what can
today.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from sys import maxsize

from msgspec.structs import replace

from ovirt_placement.model import Cluster, Host, Snapshot, Vm
from ovirt_placement.model.record import Record
from ovirt_placement.model.snapshot import HOST_STATISTICS, STORED, VM_DETAILS
from ovirt_placement.rules.affinity.constraints import asks_of_groups
from ovirt_placement.rules.affinity.filters import moves_with_its_peers, peers_of, positive_peers
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.elements.ranks import Scored, order_hosts
from ovirt_placement.rules.elements.rule import Allowed, Ask, Constraint, Rule, UnitKind, accepted_hosts
from ovirt_placement.rules.elements.verdict import Reason, Request, Verdict, Weight, unread
from ovirt_placement.rules.failover import admission
from ovirt_placement.rules.failover.balance import BALANCE
from ovirt_placement.rules.placement_keys.capacity import host_places
from ovirt_placement.rules.placement_keys.host_table import host_table
from ovirt_placement.rules.placement_keys.judgement import HostDecision
from ovirt_placement.rules.placement_keys.judgement import judge as judge_by_keys
from ovirt_placement.rules.placement_keys.keys import is_special, settings_of
from ovirt_placement.rules.placement_keys.units import (
    CHAIN_WEIGHT,
    KEY_FILTER,
    KEY_WEIGHT,
    NEEDED,
    compiled_keys,
    decide_vm,
    on_accepted_hosts,
    storage_is_local,
)
from ovirt_placement.rules.placement_rules.in_force import not_known_yet
from ovirt_placement.rules.placement_rules.units import hard_constraints
from ovirt_placement.rules.rule_list import ENGINES_OWN, LISTED, NO_UNITS, those_in_force

#: In the order in which they are asked and listed.
RULES: tuple[Rule, ...] = (*LISTED, BALANCE, admission.FILTER, admission.WEIGHT)
#: Those that we have a policy unit for, by the unit's name.
UNITS: dict[str, Rule] = {rule.name: rule for rule in RULES if rule.ours}


def in_force(cluster: Cluster, kind: UnitKind, also: Collection[str] = NO_UNITS) -> tuple[Rule, ...]:
    """The rules of a kind that count in a cluster: see `those_in_force`."""
    return those_in_force(RULES, cluster, kind, also)


def filters_in_force(cluster: Cluster, also: Collection[str] = NO_UNITS) -> tuple[Rule, ...]:
    """All filters that a VM must pass in a cluster: the engine's own affinity filters stand next to ours."""
    return (*in_force(cluster, UnitKind.FILTER, also), *ENGINES_OWN)


#: Invariants that hang on the present answers of filters: what placement keys ask of VMs that run.
momentary_constraints: Callable[[Snapshot, str], Iterator[Constraint]] = on_accepted_hosts


def constraints(snapshot: Snapshot, cluster_id: str) -> Iterator[Constraint]:
    """All invariants of the rules of a cluster, hard and soft."""
    for rule in RULES:
        if rule.constraints is not None:
            yield from rule.constraints(snapshot, cluster_id)


class Location(Record, frozen=True):
    """A running VM and its host.

    Of a host that is not up it is not known what still runs there: wait for it, or for its VMs to be
    restarted, and send no VM towards it.
    """

    vm: str
    host: str
    host_up: bool


class Violation(Record, frozen=True):
    """A rule that the running VMs violate.

    Hard positive VM groups that share members stand as one violation with all their ids, since only
    together can they be repaired; any other has one. A legacy label stands with its own id.
    """

    constraint: Constraint
    #: Of its groups, those that are violated taken alone; none, if they are split through a VM that is down.
    violated: tuple[str, ...]
    #: Every running member, whether or not it should move.
    locations: tuple[Location, ...]
    #: Members that violate it: on a wrong host, besides a member to keep away from, or off the host
    #: that most members share.
    offenders: tuple[str, ...]

    @property
    def hard(self) -> bool:
        return self.constraint.hard

    @property
    def groups(self) -> tuple[str, ...]:
        return self.constraint.groups


def find_violations(snapshot: Snapshot, cluster_id: str) -> tuple[Violation, ...]:
    """All violated rules of a cluster: hard before soft, host rules before VM rules, then by priority.

    Only members that run in the group's own cluster count (docs/rules.md, E5), and where they run,
    not where they are going. A positive host rule that lists no host is no rule (H1). All else is
    the engine's `broken` flag, with VM groups that are hard and positive unified.
    """
    placement = SnapshotPlacement(snapshot)
    up = {host.id for host in snapshot.hosts if host.up}
    found = (
        Violation(
            constraint,
            constraint.violated_groups(placement),
            tuple(Location(vm, host, host in up) for vm, host in constraint.running(placement)),
            offenders,
        )
        for constraint in constraints(snapshot, cluster_id)
        if (offenders := constraint.offenders(placement))
    )
    return tuple(sorted(found, key=_importance))


def violated_groups(snapshot: Snapshot, cluster: str) -> frozenset[str]:
    """The groups of a cluster that are violated; none if it is gone."""
    if cluster not in snapshot.cluster_by_id:
        return frozenset()
    return frozenset(group for found in find_violations(snapshot, cluster) for group in found.groups)


def find_unjudged(snapshot: Snapshot, cluster_id: str) -> tuple[str, ...]:
    """Why it is not known yet whether running VMs violate rules of a cluster: for each rule, or for all."""
    heeded = KEY_FILTER.enabled_in(snapshot.cluster_by_id[cluster_id])
    keys = unread(snapshot, VM_DETAILS, HOST_STATISTICS) if heeded else ()
    return (
        *not_known_yet(snapshot, cluster_id),
        *unread(snapshot, STORED),
        *(f"placement keys: {why}" for why in keys),
    )


def _importance(violation: Violation) -> tuple[object, ...]:
    """Hard rules have no priority among themselves: there only the size and the ids decide."""
    return (
        not violation.hard,
        violation.constraint.family != "host_affinity",
        0.0 if violation.hard else -violation.constraint.priority,
        -len(violation.locations),
        violation.groups,
    )


def asks(snapshot: Snapshot, cluster: str) -> tuple[Ask, ...]:
    """Of groups and labels, then of placement rules, then of keys that shut hosts out."""
    hosts = tuple(replace(host, status="up") for host in snapshot.hosts)
    standing = replace(snapshot, hosts=hosts, draining_hosts=())
    groups = asks_of_groups(standing).get(cluster, ())
    rules = [
        Ask(constraint.groups[0], constraint.vms, (constraint.form,), of_rule=True)
        for constraint in hard_constraints(standing, cluster)
        if constraint.vms and constraint.form is not None
    ]
    named = dict.fromkeys(vm for one in (*groups, *rules) for vm in one.vms)
    return (*groups, *rules, *_of_keys(standing, cluster, named))


def _of_keys(snapshot: Snapshot, cluster: str, vms: Collection[str]) -> Iterator[Ask]:
    """Room aside; nothing where keys have no say, or special ones, which change with what hosts run."""
    known = snapshot.cluster_by_id[cluster]
    if not KEY_FILTER.enabled_in(known) or storage_is_local(snapshot, cluster):
        return
    settings = settings_of(known.scheduling_properties)
    table, places = host_table(snapshot, settings), host_places(snapshot)
    hosts = [places[host.id] for host in snapshot.hosts_of_cluster.get(cluster, ())]
    for vm in vms:
        keys = compiled_keys(snapshot, vm)
        if any(map(is_special, keys.system)):
            continue
        accepted = judge_by_keys(keys, -maxsize, table, hosts, settings).accepted
        if len(accepted) < len(hosts):
            yield Ask(vm, (vm,), (Allowed(accepted),), of_keys=True)


#: A reason with all rules that give it.
Given = tuple[Reason, tuple[Rule, ...]]


def by_reason(found: Iterable[tuple[Rule, Reason]]) -> dict[Reason, tuple[Rule, ...]]:
    """The reasons, each once, in the order found, with all rules that give it.

    Where the engine's own filter refuses a host for the same cause as its twin of ours, one reason stands for
    both: ours, which must come first.
    """
    rules: defaultdict[Reason, dict[Rule, None]] = defaultdict(dict)
    ours: defaultdict[tuple[str | None, ...], list[Reason]] = defaultdict(list)
    for rule, reason in found:
        if reason.kind.veto:
            for twin in rule.twins:
                ours[(twin, *_cause(reason))].append(reason)
        same = ours.get((rule.name, *_cause(reason))) if reason.kind.veto else None
        for reported in same or (reason,):
            rules[reported][rule] = None
    return {reason: tuple(givers) for reason, givers in rules.items()}


def _cause(reason: Reason) -> tuple[str | None, str | None]:
    """A peer and where it is, by whichever group; else the VM and the group that ties it to hosts."""
    return reason.vm, reason.group if reason.host is None else reason.host


@dataclass(frozen=True, slots=True)
class HostJudgement:
    """What all filters together say of one host."""

    host: str
    accepted: bool
    reasons: tuple[Given, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What all filters say of all hosts that were asked about."""

    hosts: tuple[HostJudgement, ...]
    #: What is to be said of the VM wherever it runs.
    everywhere: tuple[Given, ...]
    #: The other VMs that the engine's own filters are asked about: those that move with this one.
    moves_with: tuple[str, ...] = ()


def request_for(snapshot: Snapshot, vm: Vm, hosts: Sequence[Host]) -> Request:
    """The question that the engine puts to every unit of the VM's cluster."""
    return Request(
        (vm.id,),
        tuple(host.id for host in hosts),
        parameters=snapshot.cluster_by_id[vm.cluster].scheduling_properties,
        as_engine=True,
    )


def judge(snapshot: Snapshot, vm: Vm, hosts: Sequence[Host], also: Collection[str] = NO_UNITS) -> Judgement:
    """Ask all filters that count in the VM's cluster, and those named in `also`, about each host.

    The engine's own filters are asked as they are when they judge; our units get each VM by itself. What is
    only expected refuses no host, and stands as a note.
    """
    cluster, request = snapshot.cluster_by_id[vm.cluster], request_for(snapshot, vm, hosts)
    # The engine's own filters are asked about a VM that leaves its host with its peers together with them.
    peers = tuple(peers_of(positive_peers(snapshot, request.vms)))
    others = [host for host in hosts if host.id != vm.host]
    leaves = bool(others) and moves_with_its_peers(snapshot, request_for(snapshot, vm, others), peers)
    along = peers if leaves else ()
    if along and len(others) < len(hosts):
        # It offers the others without the present host.
        parts = (others, [host for host in hosts if host.id == vm.host])
        away, stays = (judge(snapshot, vm, part, also) for part in parts)
        found = {one.host: one for one in (*away.hosts, *stays.hosts)}
        return Judgement(tuple(found[host.id] for host in hosts), away.everywhere, along)
    whole = replace(request, vms=(*request.vms, *along))
    rules = filters_in_force(cluster, also)
    by_rule = [
        [(rule, verdict) for verdict in _verdicts(rule, snapshot, request if rule.ours else whole)]
        for rule in rules
        if rule.filter is not None
    ]

    def joined(found: Sequence[tuple[Rule, Verdict]]) -> HostJudgement:
        """What several rules say of the same host; a reason of two is reported once."""
        reasons = by_reason((rule, reason) for rule, verdict in found for reason in verdict.reasons)
        accepted = all(verdict.accepted for _, verdict in found)
        return HostJudgement(found[0][1].host, accepted, tuple(reasons.items()))

    return Judgement(
        tuple(map(joined, zip(*by_rule, strict=True))),
        tuple((note, (rule,)) for rule in rules for note in rule.notes(snapshot, vm.id)),
        along,
    )


def _verdicts(rule: Rule, snapshot: Snapshot, request: Request) -> Iterator[Verdict]:
    """A filter's verdicts by what is confirmed, with what speaks against a host if all comes as expected."""
    if rule.filter is None:
        return
    if rule.depends_on.fixed or not snapshot.unconfirmed - {*request.vms}:
        yield from rule.filter(snapshot, request)
        return
    known = replace(request, unconfirmed=snapshot.unconfirmed)
    pairs = zip(rule.filter(snapshot.confirmed, known), rule.filter(snapshot, request), strict=True)
    for verdict, expected in pairs:
        against = () if expected.accepted or not verdict.accepted else expected.reasons
        notes = tuple(replace(one, kind=one.kind.unconfirmed) for one in against if one.kind.veto)
        yield replace(verdict, reasons=(*verdict.reasons, *notes)) if notes else verdict


def decide_by_keys(
    snapshot: Snapshot, vm: Vm, hosts: Iterable[Host], also: Collection[str] = NO_UNITS
) -> dict[str, HostDecision]:
    """How far each host comes by placement keys, by its id; none where no unit of them counts."""
    cluster = snapshot.cluster_by_id[vm.cluster]
    if KEY_FILTER in in_force(cluster, UnitKind.FILTER, also) and not unread(snapshot, *NEEDED):
        snapshot = snapshot.confirmed
    elif KEY_WEIGHT not in in_force(cluster, UnitKind.WEIGHT, also):
        return {}
    settings = settings_of(cluster.scheduling_properties)
    decision = decide_vm(snapshot, vm, [host.id for host in hosts], settings)
    return {one.host: one for one in decision.hosts}


def gives_way(snapshot: Snapshot, request: Request) -> bool:
    """Whether our filters refuse the one VM of a request every host, and its host is to become empty."""
    vm = snapshot.vm_by_id.get(request.vms[0])
    host = snapshot.host_by_id.get(vm.host or "") if vm is not None else None
    if vm is None or host is None or host.status != "preparing_for_maintenance":
        return False
    filters = in_force(snapshot.cluster_by_id[vm.cluster], UnitKind.FILTER)
    return not accepted_hosts(snapshot, (rule for rule in filters if rule.ours), request)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The accepted hosts from best to worst, with the points that the engine's selector gives them."""

    hosts: tuple[Scored, ...]
    #: By unit and host, as far as they count.
    weights: Mapping[str, Mapping[str, Weight]]
    #: The others, with whose verdict that is.
    refused: tuple[HostJudgement, ...]


def order(snapshot: Snapshot, vm: Vm, also: Collection[str] = NO_UNITS) -> Ranking:
    """Order the hosts of a VM's cluster that all filters accept.

    Units count where the policy enables them or is not known, or where they are named in `also`. The
    engine's own weights are not reckoned with.
    """
    cluster, hosts = snapshot.cluster_by_id[vm.cluster], snapshot.hosts_of_cluster.get(vm.cluster, ())
    judged = judge(snapshot, vm, hosts, also)
    accepted = [answer.host for answer in judged.hosts if answer.accepted]
    request = request_for(snapshot, vm, [snapshot.host_by_id[host] for host in accepted])
    weights = _weights(snapshot, cluster, request, also)
    ranks: dict[str | None, dict[str, int]] = {
        unit: {host: found.rank for host, found in by_host.items()} for unit, by_host in weights.items()
    }
    # Of our units in the cluster's policy; 1 where the policy is not known or lacks them.
    factors = cluster.scheduling_policy.weights if cluster.scheduling_policy else {}
    return Ranking(
        order_hosts(request.candidate_hosts, ranks, factors),
        weights,
        tuple(answer for answer in judged.hosts if not answer.accepted),
    )


def _weights(
    snapshot: Snapshot, cluster: Cluster, request: Request, also: Collection[str]
) -> dict[str, dict[str, Weight]]:
    """What each weight says of each host, by unit and host; none that the policy is known to lack."""
    # Of starts at once, which the weight of hard chains is for, nothing is known without a policy.
    known = cluster.scheduling_policy is not None
    return {
        rule.name: {weight.host: weight for weight in rule.weight(snapshot, request)}
        for rule in in_force(cluster, UnitKind.WEIGHT, also)
        if rule.weight is not None
        and (rule.enabled_in(cluster) or rule.name in also or not (known or rule is CHAIN_WEIGHT))
    }
