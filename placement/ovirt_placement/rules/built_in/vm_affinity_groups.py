"""The engine's own filter VmAffinityGroups, which stands next to our `AffinityFilter` and sees no chains.

Only VMs that share a group count, and a VM on its way counts only where it is going. One that runs in another
cluster is not seen. What is planned must pass this filter as well as ours.

Source: VmAffinityFilterPolicyUnit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.built_in.peers import seen_on
from ovirt_placement.rules.reasons import Reason, ReasonKind
from ovirt_placement.rules.rule import Rule, Scope, UnitKind
from ovirt_placement.rules.verdict import Request, Verdict

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


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Judge each candidate host by the hard groups of the requested VMs, as a union over positive ones."""
    if request.ignore_hard_vm_affinity:
        return tuple(Verdict(host, accepted=True) for host in request.candidate_hosts)
    groups = _hard_groups(snapshot, request.vms)
    parting = tuple(_must_part(snapshot, groups, request.vms))
    wanted = _peers(snapshot, groups, request.vms, positive=True)
    unwanted = _peers(snapshot, groups, request.vms, positive=False)
    elsewhere = tuple(reason for reasons in wanted.values() for reason in reasons[:1])

    def reasons(host: str) -> tuple[Reason, ...]:
        away = elsewhere if wanted and host not in wanted else ()
        return (*parting, *unwanted.get(host, ()), *away)

    return tuple(Verdict.of(host, reasons(host)) for host in request.candidate_hosts)


def direct_peers(snapshot: Snapshot, vm: str) -> frozenset[str]:
    """Other members of the hard positive groups of a VM whom the filter sees, or will once they run."""
    groups = (group for group in _hard_groups(snapshot, (vm,)) if group.vms_rule.positive)
    peers = {peer for group in groups for peer in snapshot.group_vms[group.id]} - {vm}
    return frozenset(
        peer for peer in peers if peer in snapshot.pending_hosts or not _foreign(snapshot, vm, peer)
    )


def _hard_groups(snapshot: Snapshot, vms: tuple[str, ...]) -> list[AffinityGroup]:
    found = {group.id: group for vm in vms for group in snapshot.groups_of_vm.get(vm, ())}
    return [group for group in found.values() if group.vms_rule.hard]


def _must_part(snapshot: Snapshot, groups: list[AffinityGroup], vms: tuple[str, ...]) -> Iterator[Reason]:
    for group in groups:
        inside = [vm for vm in snapshot.group_vms[group.id] if vm in vms]
        if not group.vms_rule.positive and len(inside) > 1:
            yield Reason(ENGINE_WANTS_APART, group.id, inside[0])


def _peers(
    snapshot: Snapshot, groups: list[AffinityGroup], vms: tuple[str, ...], *, positive: bool
) -> dict[str, list[Reason]]:
    """Members of the groups of one sign besides the requested VMs, by the host that they count on.

    Of positive groups, the first on each host is enough: large ones are asked about again and again.
    """
    found: defaultdict[str, list[Reason]] = defaultdict(list)
    first = snapshot.vm_by_id.get(vms[0]) if vms else None
    cluster = first.cluster if first is not None else None
    for group in groups:
        if group.vms_rule.positive is positive:
            for peer in snapshot.group_vms[group.id]:
                for host in seen_on(snapshot, peer, cluster) if peer not in vms else ():
                    if positive and host in found:
                        continue
                    kind = _wish(snapshot, vms[0], peer) if positive else ENGINE_WANTS_APART
                    found[host].append(Reason(kind, group.id, peer, host))
    return dict(found)


def _wish(snapshot: Snapshot, vm: str, peer: str) -> ReasonKind:
    return ENGINE_WANTS_FOREIGN_PEER if _foreign(snapshot, vm, peer) else ENGINE_WANTS_PEER


def _foreign(snapshot: Snapshot, vm: str, peer: str) -> bool:
    own, other = (snapshot.vm_by_id.get(each) for each in (vm, peer))
    return own is not None and other is not None and own.cluster != other.cluster


RULE = Rule(
    name="VmAffinityGroups",
    kind=UnitKind.FILTER,
    ours=False,
    scope=Scope.HOST_AT_ONCE,
    computed=True,
    joins=direct_peers,
    # It knows direct peers alone, and so follows one that has started elsewhere.
    only_narrows=lambda snapshot, vm, others: direct_peers(snapshot, vm).isdisjoint(others),
    filter=filter_hosts,
)
