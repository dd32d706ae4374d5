"""The weights of affinity groups: which host violates the least, then which gathers the most.

The engine's order comes first and stands; only where it sees a tie is it refined, by the number of
members that a negative group would then share the host with.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.model.infrastructure import fixed_point
from ovirt_placement.rules.affinity.constraints import asked_by_groups, between_vms, on_and_off_hosts
from ovirt_placement.rules.affinity.groups import (
    GROUP_VIOLATED_BY_VM,
    GROUP_VIOLATED_HERE,
    groups_among,
    groups_of,
    listed_hosts,
    members,
    worst_first,
)
from ovirt_placement.rules.elements.placement import destinations
from ovirt_placement.rules.elements.ranks import competition_ranks, ranked
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind, Request, Weight

POSITIVE_PEERS_HERE = ReasonKind("positive_peers_here", "VMs to run with that are here: {number:g}")
FIXED_PEERS_HERE = ReasonKind("fixed_peers_here", "of these cannot be moved: {number:g}")
#: The filter behind which hard groups need no rank of their own.
_FILTER = "AffinityFilter"
#: Hardness and priority of violated groups from the worst, then fixed positive peers and all positive peers,
#: both negated, then negative peers.
Burden = tuple[tuple[tuple[bool, int], ...], int, int, int]
#: A group, and its members without the VMs of the request, by the host that they are to be found on.
_Others = tuple[AffinityGroup, Mapping[str, Sequence[str]]]


def rank_by_vms(snapshot: Snapshot, request: Request) -> tuple[Weight, ...]:
    """Rank each candidate host by all enabled VM groups of the requested VMs, hard and soft alike.

    The burden of a host, compared part by part: the priorities of the groups violated there, from the
    highest down (any number of lower breaks beats one that is higher; fewer is better where all are
    alike); positive peers there that cannot be moved, more being better; positive peers there, more
    being better; negative peers there, fewer being better.

    Hard and soft groups share one scale of priorities, as in the engine: behind the hard filter that
    changes nothing. Where the policy is known to lack that, hard ones come first (docs/rules.md, W2).
    """
    policies = (snapshot.cluster_by_id[vm.cluster].scheduling_policy for vm in request.known_vms(snapshot))
    hard_above_soft = any(policy is not None and _FILTER not in policy.filters for policy in policies)
    groups = tuple(_others(snapshot, request))

    def judge(host: str) -> tuple[Burden, tuple[Reason, ...]]:
        violated: list[tuple[tuple[bool, int], Reason]] = []
        positive, negative = set[str](), set[str]()
        for group, by_host in groups:
            there, rule = by_host.get(host, ()), group.vms_rule
            (positive if rule.positive else negative).update(there)
            if bool(there) is not rule.positive:
                key = (hard_above_soft and rule.enforcing, fixed_point(group.priority))
                kind = GROUP_VIOLATED_BY_VM if there else GROUP_VIOLATED_HERE
                peer = there[0] if there else None
                violated.append((key, Reason(kind, group.id, peer, number=group.priority)))
        fixed = sum(not snapshot.vm_by_id[vm].movable for vm in positive)
        gains = ((POSITIVE_PEERS_HERE, len(positive)), (FIXED_PEERS_HERE, fixed))
        priorities = tuple(sorted((key for key, _ in violated), reverse=True))
        return (priorities, -fixed, -len(positive), len(negative)), (
            *(reason for _, reason in violated),
            *(Reason(kind, number=count) for kind, count in gains if count),
        )

    burden, reasons = judge("")
    judged = {host: judge(host) for _, by_host in groups for host in by_host}
    return ranked(
        snapshot,
        request.candidate_hosts,
        {host: found for host, (found, _) in judged.items()},
        {host: judged[host][1] if host in judged else reasons for host in request.candidate_hosts},
        unburdened=burden,
    )


def _others(snapshot: Snapshot, request: Request) -> Iterator[_Others]:
    for group in groups_among(groups_of(snapshot), request.vms):
        if not group.vms_rule.enabled:
            continue
        by_host: defaultdict[str, list[str]] = defaultdict(list)
        for peer in members(snapshot)[group.id]:
            if peer not in request.vms:
                for host in destinations(snapshot, peer):
                    by_host[host].append(peer)
        yield group, by_host


VM_WEIGHT = Rule(
    name="SoftAffinityWeight",
    kind=UnitKind.WEIGHT,
    twins=("VmAffinityGroups",),
    asked_by=asked_by_groups("vms", "soft"),
    weight=rank_by_vms,
    constraints=partial(between_vms, hard=False),
)


def rank_by_hosts(snapshot: Snapshot, request: Request) -> tuple[Weight, ...]:
    """Rank each candidate host by the soft host rules of the requested VMs.

    One VM compares the priorities of the rules violated on each host from the highest down, as VM
    affinity does. Several VMs add up the number of hosts that are better for each, as the engine
    does. A rule that lists no host is violated everywhere and so decides nothing.
    """
    sums: Counter[str] = Counter()
    reasons: dict[str, tuple[Reason, ...]] = dict.fromkeys(request.candidate_hosts, ())
    for vm in request.vms:
        rules = [group for group in groups_of(snapshot).get(vm, ()) if group.hosts_rule.soft]
        if rules:
            listed = [(group, listed_hosts(snapshot)[group.id]) for group in rules]
            violated = {
                host: [group for group, own in listed if (host in own) is not group.hosts_rule.positive]
                for host in request.candidate_hosts
            }
            sums.update(competition_ranks({host: worst_first(groups) for host, groups in violated.items()}))
            for host, groups in violated.items():
                reasons[host] += tuple(
                    Reason(GROUP_VIOLATED_HERE, group.id, number=group.priority) for group in groups
                )
    return ranked(snapshot, request.candidate_hosts, sums, reasons, unburdened=0)


HOST_WEIGHT = Rule(
    name="HostAffinityWeight",
    kind=UnitKind.WEIGHT,
    twins=("VmToHostsAffinityGroups",),
    asked_by=asked_by_groups("hosts", "soft"),
    weight=rank_by_hosts,
    constraints=partial(on_and_off_hosts, hard=False),
)
