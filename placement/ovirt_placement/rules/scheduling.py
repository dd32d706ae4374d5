"""What the engine would decide: the hosts that all filters leave a VM, their order, what its enforcer moves.

Hosts are ordered as by the engine's selector. Its own enforcer goes by families before priorities: hard host
rules, hard VM rules, soft host rules, soft VM rules.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from msgspec.structs import replace

from ovirt_placement.model import AffinityGroup, Cluster, Host, Snapshot, Vm
from ovirt_placement.model.infrastructure import fixed_point
from ovirt_placement.rules.affinity.constraints import listed_hosts
from ovirt_placement.rules.affinity.filters import moves_with_its_peers, peers_of, positive_peers
from ovirt_placement.rules.affinity.groups import groups_of, members
from ovirt_placement.rules.catalogue import filters_in_force, in_force
from ovirt_placement.rules.elements.placement import Placement
from ovirt_placement.rules.elements.ranks import KeyOrder, in_order, order_hosts, put_all
from ovirt_placement.rules.elements.rule import Constraint, Rule, UnitKind
from ovirt_placement.rules.elements.verdict import Reason, Request, Verdict, Weight, unread
from ovirt_placement.rules.placement_keys.judgement import HostDecision
from ovirt_placement.rules.placement_keys.keys import settings_of
from ovirt_placement.rules.placement_keys.units import CHAIN_WEIGHT, KEY_FILTER, KEY_WEIGHT, NEEDED, decide_vm
from ovirt_placement.rules.rule_list import NO_UNITS

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
    whole = _as_the_engine_moves(snapshot, request)
    rules = filters_in_force(cluster, also)
    by_rule = [
        [(rule, verdict) for verdict in _verdicts(rule, snapshot, request if rule.ours else whole)]
        for rule in rules
        if rule.filter is not None
    ]
    return Judgement(
        tuple(_joined(found) for found in zip(*by_rule, strict=True)),
        tuple((note, (rule,)) for rule in rules for note in rule.notes(snapshot, vm.id)),
        whole.vms[1:],
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


def _as_the_engine_moves(snapshot: Snapshot, request: Request) -> Request:
    """The question to the engine's own filters: with its peers, a VM that leaves its host with them."""
    peers = tuple(peers_of(positive_peers(snapshot, request.vms)))
    if not moves_with_its_peers(snapshot, request, peers):
        return request
    return replace(request, vms=(*request.vms, *peers))


def _joined(found: Sequence[tuple[Rule, Verdict]]) -> HostJudgement:
    """What several rules say of the same host; a reason of two is reported once."""
    reasons = by_reason((rule, reason) for rule, verdict in found for reason in verdict.reasons)
    accepted = all(verdict.accepted for _, verdict in found)
    return HostJudgement(found[0][1].host, accepted, tuple(reasons.items()))


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
    left = request.candidate_hosts
    for rule in in_force(snapshot.cluster_by_id[vm.cluster], UnitKind.FILTER):
        if rule.ours and rule.filter is not None and left:
            verdicts = rule.filter(snapshot, replace(request, candidate_hosts=left))
            left = tuple(verdict.host for verdict in verdicts if verdict.accepted)
    return not left


@dataclass(frozen=True, slots=True)
class Ranked:
    """A host, the points that the engine's selector gives it, and each unit's rank of it."""

    host: str
    points: int
    #: By unit.
    weights: Mapping[str, Weight]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The accepted hosts from best to worst, the units whose weights count, and the refused hosts."""

    units: tuple[str, ...]
    hosts: tuple[Ranked, ...]
    #: The others, with whose verdict that is.
    refused: tuple[HostJudgement, ...]


def order(snapshot: Snapshot, vm: Vm, also: Collection[str] = NO_UNITS) -> Ranking:
    """Order the hosts of a VM's cluster that all filters accept.

    Units count where the policy enables them or is not known, or where they are named in `also`. The
    engine's own weights are not reckoned with.
    """
    cluster, hosts = snapshot.cluster_by_id[vm.cluster], snapshot.hosts_of_cluster.get(vm.cluster, ())
    judged = judge(snapshot, vm, hosts, also)
    accepted = {answer.host for answer in judged.hosts if answer.accepted}
    request = request_for(snapshot, vm, [host for host in hosts if host.id in accepted])
    weights = _weights(snapshot, cluster, request, also)
    ranks: dict[str | None, dict[str, int]] = {
        unit: {host: found.rank for host, found in by_host.items()} for unit, by_host in weights.items()
    }
    # Of our units in the cluster's policy; 1 where the policy is not known or lacks them.
    factors = cluster.scheduling_policy.weights if cluster.scheduling_policy else {}
    ordered = order_hosts(request.candidate_hosts, ranks, factors)
    return Ranking(
        tuple(weights),
        tuple(
            Ranked(one.host, one.points, {unit: by_host[one.host] for unit, by_host in weights.items()})
            for one in ordered
        ),
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


def gains(snapshot: Snapshot, vm: str, target: str | None) -> bool:
    """Whether soft groups of a VM are better off on the target, which is the best host for it.

    The engine takes a gain in either family, however much the other loses, and may undo it later.
    """
    source = snapshot.vm_by_id[vm].host
    if target is None or source is None or target == source:
        return False
    soft = groups_of(snapshot).get(vm, ())
    families = (
        _host_levels(snapshot, soft, source, target),
        _vm_levels(snapshot, soft, vm, source, target),
    )
    # More than 0 is a gain, less is a loss, by the highest priority in which the hosts differ.
    return any(next(filter(None, levels), 0) > 0 for levels in families)


def _by_priority(groups: Iterable[AffinityGroup]) -> Iterator[list[AffinityGroup]]:
    ordered = sorted(groups, key=lambda group: -fixed_point(group.priority))
    for _, same in groupby(ordered, key=lambda group: fixed_point(group.priority)):
        yield list(same)


def _host_levels(
    snapshot: Snapshot, groups: Iterable[AffinityGroup], source: str, target: str
) -> Iterator[int]:
    """By priority, how many groups fewer are violated on the target."""

    def right(group: AffinityGroup, host: str) -> bool:
        return (host in listed_hosts(snapshot, group)) is group.hosts_rule.positive

    soft = [group for group in groups if group.hosts_rule.soft and listed_hosts(snapshot, group)]
    for same in _by_priority(soft):
        yield sum(right(group, target) - right(group, source) for group in same)


def _vm_levels(
    snapshot: Snapshot, groups: Iterable[AffinityGroup], vm: str, source: str, target: str
) -> Iterator[int]:
    """By priority, whether positive and negative groups gain: a loss of either sign is one."""
    for same in _by_priority(group for group in groups if group.vms_rule.soft):
        scores: defaultdict[bool, int] = defaultdict(int)
        for group in same:
            hosts = [snapshot.vm_by_id[peer].host for peer in members(snapshot)[group.id] if peer != vm]
            there, here = hosts.count(target), hosts.count(source)
            if group.vms_rule.positive:
                scores[True] += (there > here) - (there < here)
            else:
                scores[False] += (here > 0) - (there > 0)
        yield min(scores.values()) if min(scores.values()) < 0 else max(scores.values())


#: VMs that are equal to the engine: it shuffles them.
Tier = tuple[str, ...]


def tiers(
    violated: Collection[Constraint], placement: Placement, movable: Collection[str]
) -> Iterator[tuple[bool, Tier]]:
    """The VMs of violated rules in the order in which they are tried, and whether a hard rule asks for it.

    A VM may come again, and some cannot move. Members that may go are those that the engine lets go (see
    `buckets`). Only what it draws lots about comes together: VMs on wrong hosts come one by one, and crowds
    that are equal one after the other, in the order of its tables.
    """
    for hard in (True, False):
        mine = [one for one in violated if one.hard is hard]
        wrong = Counter(
            vm for rule in mine if rule.family == "host_affinity" for vm in rule.offenders(placement)
        )
        # Those with the fewest violated rules first, of equals as in the engine's table.
        for vm in sorted(put_all(wrong), key=wrong.__getitem__):
            yield hard, (vm,)
        for tier in _vm_tiers(mine, placement, movable):
            yield hard, tier


def buckets(
    rule: Constraint, placement: Placement, movable: Collection[str], *, as_engine: bool = False
) -> Iterator[Tier]:
    """The members of a violated VM rule that may go: of equal crowds, those on whom it depends first.

    A positive group gathers: the smallest crowd goes first, and one with a member that cannot go stays. A
    negative group parts: only crowds go, the largest first; the engine itself lets none go of which a member
    cannot. With `as_engine` each crowd comes by itself; of equal ones first whose host is first in its table.
    """
    crowds: defaultdict[str, list[str]] = defaultdict(list)
    table = KeyOrder()
    running = dict(rule.running(placement))
    for vm in rule.as_engine_lists() if as_engine else running:
        if vm in running:
            crowds[running[vm]].append(vm)
            if vm in movable:
                table.put(running[vm])
    by_size: defaultdict[int, list[Tier]] = defaultdict(list)
    for host in table.listed():
        vms = crowds[host]
        going = [vm for vm in vms if vm in movable] if rule.positive or len(vms) > 1 else []
        if (rule.positive or as_engine) and len(going) < len(vms):
            going = []
        by_size[len(vms)].append(tuple(going))
    for size in sorted(by_size, reverse=not rule.positive):
        if as_engine:
            yield from by_size[size]
        else:
            yield tuple(chain.from_iterable(by_size[size]))


def _vm_tiers(
    rules: Iterable[Constraint],
    placement: Placement,
    movable: Collection[str],
) -> Iterator[Tier]:
    """Of each rule between VMs, buckets: soft rules by priority, then the larger ones first."""
    mine = [rule for rule in rules if rule.family == "vm_affinity"]
    mine.sort(key=lambda rule: min(map(in_order, rule.vms)), reverse=True)
    mine.sort(key=lambda rule: (0 if rule.hard else -fixed_point(rule.priority), -len(rule.vms)))
    for rule in mine:
        yield from buckets(rule, placement, movable, as_engine=True)
