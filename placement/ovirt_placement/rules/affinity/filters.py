"""The hard rules of affinity groups: VMs that must run together or apart, and on which hosts (docs/rules.md).

Lets the engine move a positive group as a whole, though it asks for one VM at a time.
It never offers the source among the hosts. Held to its peers there, no VM of such a group could ever
leave its host, and none could be put into maintenance. The engine's own filter has judged the group already.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from msgspec.structs import replace

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.model.snapshot import grouped
from ovirt_placement.rules.affinity.constraints import (
    Restriction,
    asked_by_groups,
    asks,
    between_vms,
    configured,
    hard_host_groups_of,
    judge_restrictions,
    on_and_off_hosts,
)
from ovirt_placement.rules.affinity.groups import (
    groups_among,
    groups_of,
    hard_positive_group_of,
    listed_hosts,
    members,
)
from ovirt_placement.rules.affinity.weights import HOST_WEIGHT, VM_WEIGHT
from ovirt_placement.rules.elements.placement import destinations, occupied, target_unknown
from ovirt_placement.rules.elements.rule import Dependence, Rule, Scope, UnitKind
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind, Request, Verdict

GROUP_MOVES_ALONG = ReasonKind(
    "group_moves_along",
    "must run with VM {vm}, which is on host {host} too: the engine moves {group} as a whole",
)


def moves_with_its_peers(snapshot: Snapshot, request: Request, peers: Iterable[str]) -> bool:
    """Whether a migration takes a VM away from positive peers that all run on its own present host.

    One that only starts there the engine does not take along, and so lets none of them go.
    """
    if not request.as_engine or len(request.vms) != 1:
        return False
    vm = snapshot.vm_by_id.get(request.vms[0])
    present = None if vm is None else vm.host
    if present is None or present in request.candidate_hosts:
        return False
    counting = [(peer, hosts) for peer in peers if (hosts := destinations(snapshot, peer))]
    return bool(counting) and all(
        set(hosts) == {present}
        and (known := snapshot.vm_by_id.get(peer)) is not None
        and known.host == present
        for peer, hosts in counting
    )


UNIT_MISSING = ReasonKind(
    "unit_missing", "{group} has a soft rule for VM {vm}, and the cluster's policy does not enable {unit}"
)
#: The same where the policy says to refuse the VM for it, as Nova does.
UNIT_MISSING_REFUSED = ReasonKind(UNIT_MISSING.name, UNIT_MISSING.sentence, veto=True, loud=True)

#: Our weights, the half of a group that asks for each, and the name of its twin's factor in a cluster.
_WEIGHTS = ((VM_WEIGHT, "vms", "vm_affinity_weight"), (HOST_WEIGHT, "hosts", "vm_to_host_weight"))


def missing_units(snapshot: Snapshot, vm_id: str) -> tuple[Reason, ...]:
    """Soft rules of a VM that mean nothing, since its cluster's policy weighs them with no unit.

    A unit with factor 0 weighs nothing either. Where the policy is not known nothing is missing. Hard
    rules are not asked about: whether the engine's own filters stand in the policy is not part of the
    cluster's state.
    """
    vm = snapshot.vm_by_id.get(vm_id)
    cluster = None if vm is None else snapshot.cluster_by_id[vm.cluster]
    if cluster is None or cluster.scheduling_policy is None:
        return ()
    lacking = [
        (rule, half)
        for rule, half, twin in _WEIGHTS
        if not rule.enabled_in(cluster) and not cluster.policy.get(twin, 0) > 0
    ]
    return tuple(
        Reason(UNIT_MISSING, group.id, vm_id, unit=rule.name)
        for group in (groups_of(snapshot).get(vm_id, ()) if lacking else ())
        for rule, half in lacking
        if asks(snapshot, group, half, "soft")
    )


POSITIVE_PEER_ELSEWHERE = ReasonKind(
    "positive_peer_elsewhere", "must run with VM {vm}, which is on host {host} ({group})", veto=True
)
NEGATIVE_PEER_HERE = ReasonKind(
    "negative_peer_here", "must not run with VM {vm}, which is on host {host} ({group})", veto=True
)
#: No one host can take both.
REQUEST_MUST_PART = ReasonKind(
    "request_must_part", "VM {vm} must not run with another VM of the same request ({group})", veto=True
)
POSITIVE_PEER_HERE = ReasonKind("positive_peer_here", "joins VM {vm} here ({group})")
POSITIVE_PEERS_SPLIT = ReasonKind(
    "positive_peers_split", "VM {vm} of {group} is on host {host}: the group is split and stays so"
)
MIGRATION_TARGET_UNKNOWN = ReasonKind(
    "migration_target_unknown",
    "VM {vm} of {group} is migrating from host {host} to a host that is not known: only the source counts",
)


def filter_by_vms(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Judge each candidate host, in order, by the hard VM-to-VM groups of the requested VMs.

    Positive peers anywhere in the unified group admit the hosts they are on, as a union where the
    group is split already (F2, F3); a negative peer excludes its host, both ends of a migration (F4).
    Negative outweighs positive, and VMs that exclude each other get no host at all. Asked as the engine
    asks, a VM may leave its host with its peers; and where the policy says so, a VM of a soft group that
    no unit weighs gets no host (see `missing_units`).
    """
    everywhere: tuple[Reason, ...] = ()
    if request.parameters.get("affinity_missing_unit") == "reject":
        missing = (one for vm in request.vms for one in missing_units(snapshot, vm))
        everywhere = tuple(replace(one, kind=UNIT_MISSING_REFUSED) for one in missing)
    if not everywhere:
        apart = (
            (group, members(snapshot)[group.id])
            for group in _hard_groups(snapshot, request.vms, positive=False)
        )
        inside = ((group.id, [vm for vm in own if vm in request.vms]) for group, own in apart)
        everywhere = tuple(Reason(REQUEST_MUST_PART, group, vms[0]) for group, vms in inside if len(vms) > 1)
    if everywhere:
        return tuple(Verdict(host, accepted=False, reasons=everywhere) for host in request.candidate_hosts)
    gathered = positive_peers(snapshot, request.vms, request.unconfirmed)
    rivals = negative_peers(snapshot, request.vms, request.unconfirmed)
    notes = tuple(_unknown_targets(snapshot, gathered, rivals))
    together = moves_with_its_peers(snapshot, request, peers_of(gathered))
    kind = GROUP_MOVES_ALONG if together else POSITIVE_PEER_ELSEWHERE
    # One peer of each group: who goes by what is said meets no other.
    each_group = ({one.group: one for one in reversed(peers)} for peers in gathered.values())
    elsewhere = tuple(replace(peer, kind=kind) for found in each_group for peer in reversed(found.values()))
    # Who stays elsewhere of a group that is split already; the others say whom the VMs join.
    split = {host: replace(peer, kind=POSITIVE_PEERS_SPLIT) for host, (peer, *_) in gathered.items()}
    if together:
        notes, elsewhere, split = (*notes, *elsewhere), (), {}

    def judge(host: str) -> Verdict:
        vetoes = rivals.get(host, ())
        if gathered and host not in gathered:
            vetoes = (*vetoes, *elsewhere)
        if vetoes:
            return Verdict(host, accepted=False, reasons=(*vetoes, *notes))
        agreeing = (gathered[there][0] if there == host else stays for there, stays in split.items())
        return Verdict(host, accepted=True, reasons=(*agreeing, *notes))

    # Of hosts without peers it says the same: of thousands, each by itself would take milliseconds.
    found = {host: judge(host) for host in (*gathered, *rivals)}
    other = judge("")
    return tuple(
        found[host] if host in found else Verdict(host, other.accepted, other.reasons)
        for host in request.candidate_hosts
    )


def positive_peers(
    snapshot: Snapshot, vms: tuple[str, ...], unconfirmed: frozenset[str] = frozenset()
) -> dict[str, tuple[Reason, ...]]:
    """Hosts that VMs must join their peers on, by host, with who is there; empty if none runs yet.

    Peers that are unconfirmed are left out.
    """
    peers = dict.fromkeys(one for vm in vms for one in _unified_peers(snapshot, vm, vms))
    return grouped(
        (host, Reason(POSITIVE_PEER_HERE, group, peer, host))
        for group, peer in peers
        if peer not in unconfirmed
        for host in destinations(snapshot, peer)
    )


def peers_of(gathered: Mapping[str, Iterable[Reason]]) -> Iterator[str]:
    """The VMs that are named, each once."""
    named = (reason.vm for reasons in gathered.values() for reason in reasons)
    yield from dict.fromkeys(vm for vm in named if vm is not None)


def negative_peers(
    snapshot: Snapshot, vms: tuple[str, ...], unconfirmed: frozenset[str] = frozenset()
) -> dict[str, tuple[Reason, ...]]:
    """Hosts that VMs must not run on because of a peer there, by host, with who is there.

    Peers that are unconfirmed are left out.
    """
    return grouped(
        (host, Reason(NEGATIVE_PEER_HERE, group.id, peer, host))
        for group in _hard_groups(snapshot, vms, positive=False)
        for peer in members(snapshot)[group.id]
        if peer not in vms and peer not in unconfirmed
        for host in occupied(snapshot, peer)
    )


def _hard_groups(snapshot: Snapshot, vms: tuple[str, ...], *, positive: bool) -> Iterator[AffinityGroup]:
    rules = ((group, group.vms_rule) for group in groups_among(groups_of(snapshot), vms))
    return (group for group, rule in rules if rule.hard and rule.positive is positive)


def _unified_peers(snapshot: Snapshot, vm: str, vms: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Each other member of a VM's unified group, with each of the VM's own groups that it is in, else one."""
    unified = hard_positive_group_of(snapshot).get(vm)
    if unified is None:
        return
    own = [
        (group.id, peer)
        for group in _hard_groups(snapshot, (vm,), positive=True)
        for peer in members(snapshot)[group.id]
    ]
    known = {*vms, *(peer for _, peer in own)}
    yield from ((group, peer) for group, peer in own if peer not in vms)
    for peer in unified.vms:
        if peer not in known:
            groups = groups_of(snapshot)[peer]
            yield next(group.id for group in groups if group.id in unified.groups), peer


def _unknown_targets(snapshot: Snapshot, *peers_by_host: dict[str, tuple[Reason, ...]]) -> Iterator[Reason]:
    peers = (peer for by_host in peers_by_host for found in by_host.values() for peer in found)
    for peer in dict.fromkeys(peers):
        if peer.vm is not None and target_unknown(snapshot, peer.vm):
            yield replace(peer, kind=MIGRATION_TARGET_UNKNOWN)


VM_FILTER = Rule(
    name="AffinityFilter",
    kind=UnitKind.FILTER,
    twins=("VmAffinityGroups",),
    asked_by=asked_by_groups("vms", "hard"),
    notes=missing_units,
    filter=filter_by_vms,
    # It gathers VMs where members of the unified group are, and starts of these go there too.
    depends_on=Dependence(scope=Scope.HOST_AT_ONCE, only_narrows=lambda snapshot, vm, others: True),
    constraints=partial(between_vms, hard=True),
)


HOST_NOT_LISTED = ReasonKind("host_not_listed", "VM {vm} may only run on the hosts of {group}", veto=True)
HOST_FORBIDDEN = ReasonKind("host_forbidden", "VM {vm} must not run on the hosts of {group}", veto=True)
#: Marked in our store by a maintenance run; the engine, which still shows it as up, knows nothing of it.
HOST_DRAINING = ReasonKind("host_draining", "the host is being emptied for maintenance", veto=True)
#: It is treated as not configured.
GROUP_WITHOUT_HOSTS = ReasonKind(
    "group_without_hosts", "{group} restricts VM {vm} to hosts but lists none: not counted"
)


def filter_by_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Judge each candidate host, in order, by every hard host group of every requested VM.

    All groups apply, so positive ones intersect; the host that a VM runs on has no exemption. A host that is
    being emptied takes no VM.
    """
    notes: list[Reason] = []
    restrictions: list[Restriction] = [
        (frozenset((host,)), False, Reason(HOST_DRAINING, host=host)) for host in {*snapshot.draining_hosts}
    ]
    for vm in request.vms:
        for group in hard_host_groups_of(snapshot).get(vm, ()):
            positive = group.hosts_rule.positive
            if configured(snapshot, group):
                against = Reason(HOST_NOT_LISTED if positive else HOST_FORBIDDEN, group.id, vm)
                restrictions.append((listed_hosts(snapshot)[group.id], positive, against))
            elif positive:
                notes.append(Reason(GROUP_WITHOUT_HOSTS, group.id, vm))
    return judge_restrictions(request.candidate_hosts, restrictions, tuple(notes))


def _groups(snapshot: Snapshot, vm: str) -> tuple[str, ...]:
    return tuple(group.id for group in hard_host_groups_of(snapshot).get(vm, ()))


HOST_FILTER = Rule(
    name="HostAffinityFilter",
    kind=UnitKind.FILTER,
    twins=("VmToHostsAffinityGroups",),
    asked_by=asked_by_groups("hosts", "hard"),
    filter=filter_by_hosts,
    depends_on=Dependence(fixed=True, alike=_groups),
    constraints=partial(on_and_off_hosts, hard=True),
)
