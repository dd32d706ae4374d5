"""What the engine itself makes of affinity groups: its own filters, and what its enforcer moves.

Its filters stand next to ours: what is planned must pass both. VmAffinityGroups sees no chains: only VMs
that share a group count, a VM on its way only where it is going, and none that runs in another cluster. For
VmToHostsAffinityGroups a positive group without hosts shuts out every host; for ours it is not configured.

Its enforcer goes by families before priorities: hard host rules, hard VM rules, soft host rules, soft VM
rules.

Source: VmAffinityFilterPolicyUnit, which asks of running VMs for those of the cluster of the VM that is
scheduled, by `getAllRunningByCluster`; pending ones stand in their place, and have no cluster.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.model.infrastructure import fixed_point
from ovirt_placement.rules.affinity.constraints import hard_host_groups_of, judge_restrictions, legacy_groups
from ovirt_placement.rules.affinity.groups import groups_among, groups_of, listed_hosts, members
from ovirt_placement.rules.elements.placement import Placement, destinations
from ovirt_placement.rules.elements.ranks import KeyOrder, in_order, put_all
from ovirt_placement.rules.elements.rule import Constraint, Dependence, Rule, Scope, UnitKind
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind, Request, Verdict


def peers_by_host(snapshot: Snapshot, group: AffinityGroup, vms: Sequence[str]) -> dict[str, list[str]]:
    """The members of a group besides some VMs of one cluster, by the host that they count on.

    That is the target of one that is pending, else its host; of another cluster's, its target alone.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    first = snapshot.vm_by_id.get(vms[0]) if vms else None
    for peer in snapshot.group_vms[group.id]:
        if peer not in vms:
            known = snapshot.vm_by_id.get(peer)
            foreign = first is not None and known is not None and first.cluster != known.cluster
            for host in snapshot.pending_hosts.get(peer, ()) if foreign else destinations(snapshot, peer):
                found[host].append(peer)
    return dict(found)


#: A host of `vm`, a peer, would do.
ENGINE_WANTS_PEER = ReasonKind(
    "engine_wants_peer", "the engine runs it with VM {vm}, which is on host {host} ({group})", veto=True
)
#: It can never come here; once it runs the engine sees it no more.
ENGINE_WANTS_FOREIGN_PEER = ReasonKind(
    "engine_wants_foreign_peer",
    "the engine runs it with VM {vm} of another cluster, which is on its way to host {host} ({group})",
    veto=True,
)
ENGINE_WANTS_APART = ReasonKind(
    "engine_wants_apart",
    "the engine runs it apart from VM {vm}, which is on host {host} ({group})",
    veto=True,
)


def filter_by_vm_groups(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Judge each candidate host by the hard groups of the requested VMs, as a union over positive ones."""
    vms = request.vms
    parting: list[Reason] = []
    #: By host. Of positive groups the first peer there is enough: large ones are asked about again and again.
    unwanted: defaultdict[str, list[Reason]] = defaultdict(list)
    wanted: dict[str, Reason] = {}
    for group in _hard_groups(snapshot, vms):
        peers_on = peers_by_host(snapshot, group, vms).items()
        if group.vms_rule.positive:
            for host, peers in peers_on:
                if host not in wanted:
                    foreign = _foreign(snapshot, vms[0], peers[0])
                    kind = ENGINE_WANTS_FOREIGN_PEER if foreign else ENGINE_WANTS_PEER
                    wanted[host] = Reason(kind, group.id, peers[0], host)
            continue
        inside = [vm for vm in snapshot.group_vms[group.id] if vm in vms]
        if len(inside) > 1:
            parting.append(Reason(ENGINE_WANTS_APART, group.id, inside[0]))
        for host, peers in peers_on:
            unwanted[host] += [Reason(ENGINE_WANTS_APART, group.id, peer, host) for peer in peers]
    elsewhere = tuple(wanted.values())

    def reasons(host: str) -> tuple[Reason, ...]:
        return (*parting, *unwanted.get(host, ()), *(() if host in wanted else elsewhere))

    return tuple(Verdict.of_reasons(host, reasons(host)) for host in request.candidate_hosts)


def direct_peers(snapshot: Snapshot, vm: str) -> frozenset[str]:
    """Other members of the hard positive groups of a VM whom the filter sees, or will once they run."""
    groups = (group for group in _hard_groups(snapshot, (vm,)) if group.vms_rule.positive)
    peers = {peer for group in groups for peer in snapshot.group_vms[group.id]} - {vm}
    return frozenset(
        peer for peer in peers if peer in snapshot.pending_hosts or not _foreign(snapshot, vm, peer)
    )


def _hard_groups(snapshot: Snapshot, vms: tuple[str, ...]) -> list[AffinityGroup]:
    return [group for group in groups_among(snapshot.groups_of_vm, vms) if group.vms_rule.hard]


def _foreign(snapshot: Snapshot, vm: str, peer: str) -> bool:
    own, other = (snapshot.vm_by_id.get(each) for each in (vm, peer))
    return own is not None and other is not None and own.cluster != other.cluster


VM_GROUPS = Rule(
    name="VmAffinityGroups",
    kind=UnitKind.FILTER,
    ours=False,
    filter=filter_by_vm_groups,
    depends_on=Dependence(
        scope=Scope.HOST_AT_ONCE,
        computed=True,
        joins=direct_peers,
        # It knows direct peers alone, and so follows one that has started elsewhere.
        only_narrows=lambda snapshot, vm, others: direct_peers(snapshot, vm).isdisjoint(others),
    ),
)
ENGINE_KEEPS_OFF = ReasonKind(
    "engine_keeps_off", "the engine does not allow VM {vm} on this host by the hosts of {group}", veto=True
)
#: Every host is kept from it.
ENGINE_MISSES_HOSTS = ReasonKind(
    "engine_misses_hosts",
    "the engine does not allow VM {vm} on this host: {group} ties it to hosts and lists none",
    veto=True,
)


def filter_by_host_groups(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Judge each candidate host by every hard host group of every requested VM, and by legacy labels."""
    restrictions = [
        (
            frozenset(snapshot.group_hosts[group.id]),
            group.hosts_rule.positive,
            Reason(ENGINE_KEEPS_OFF if snapshot.group_hosts[group.id] else ENGINE_MISSES_HOSTS, group.id, vm),
        )
        for vm in request.vms
        for group in snapshot.groups_of_vm.get(vm, ())
        if group.hosts_rule.hard
    ]
    restrictions += [
        (frozenset(label.hosts), True, Reason(ENGINE_KEEPS_OFF, label.id, vm))
        for label in legacy_groups(snapshot)
        for vm in request.vms
        if vm in label.vms
    ]

    return judge_restrictions(request.candidate_hosts, restrictions)


def _groups(snapshot: Snapshot, vm: str) -> tuple[str, ...]:
    """Groups of other clusters are among the engine's, legacy labels among ours."""
    engines = (group.id for group in snapshot.groups_of_vm.get(vm, ()) if group.hosts_rule.hard)
    return (*engines, *(group.id for group in hard_host_groups_of(snapshot).get(vm, ())))


HOST_GROUPS = Rule(
    name="VmToHostsAffinityGroups",
    kind=UnitKind.FILTER,
    ours=False,
    filter=filter_by_host_groups,
    depends_on=Dependence(fixed=True, alike=_groups),
)


def gains(snapshot: Snapshot, vm: str, target: str | None) -> bool:
    """Whether soft groups of a VM are better off on the target, which is the best host for it.

    The engine takes a gain in either family, however much the other loses, and may undo it later.
    """
    source = snapshot.vm_by_id[vm].host
    if target is None or source is None or target == source:
        return False
    soft = groups_of(snapshot).get(vm, ())
    families = (_host_levels(snapshot, soft, source, target), _vm_levels(snapshot, soft, vm, source, target))
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
        return (host in listed_hosts(snapshot)[group.id]) is group.hosts_rule.positive

    soft = [group for group in groups if group.hosts_rule.soft and listed_hosts(snapshot)[group.id]]
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
        between = [rule for rule in mine if rule.family == "vm_affinity"]
        between.sort(key=lambda rule: min(map(in_order, rule.vms)), reverse=True)
        # Soft rules by priority, then the larger ones first.
        between.sort(key=lambda rule: (0 if hard else -fixed_point(rule.priority), -len(rule.vms)))
        for rule in between:
            for tier in buckets(rule, placement, movable, as_engine=True):
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
