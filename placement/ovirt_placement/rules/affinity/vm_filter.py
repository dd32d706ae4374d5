"""The hard VM-to-VM rule: VMs that must run together, VMs that must not (docs/rules.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.affinity.membership import groups_of, members
from ovirt_placement.rules.affinity.unified_groups import hard_positive_group_of
from ovirt_placement.rules.locations import destinations, occupied, target_unknown
from ovirt_placement.rules.verdict import Kind, Reason, Request, Verdict


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Judge each candidate host, in order, by the hard VM-to-VM groups of the requested VMs.

    Positive peers anywhere in the unified group admit the hosts they are on, as a union where the
    group is split already (F2, F3); a negative peer excludes its host, both ends of a migration (F4).
    Negative outweighs positive, and VMs that exclude each other get no host at all.
    """
    if request.ignore_hard_vm_affinity:
        return tuple(Verdict(host, accepted=True) for host in request.candidate_hosts)
    parting = tuple(_must_part(snapshot, request.vms))
    if parting:
        return tuple(Verdict(host, accepted=False, reasons=parting) for host in request.candidate_hosts)
    gathered = positive_peers(snapshot, request.vms)
    apart = negative_peers(snapshot, request.vms)
    notes = tuple(_unknown_targets(snapshot, gathered, apart))
    elsewhere = tuple(
        Reason(Kind.POSITIVE_PEER_ELSEWHERE, peer.group, peer.vm, peer.host)
        for peer in (peers[0] for peers in gathered.values())
    )

    def judge(host: str) -> Verdict:
        vetoes = apart.get(host, ())
        if gathered and host not in gathered:
            vetoes = (*vetoes, *elsewhere)
        if vetoes:
            return Verdict(host, accepted=False, reasons=(*vetoes, *notes))
        return Verdict(host, accepted=True, reasons=(*_agreeing(gathered, host), *notes))

    return tuple(judge(host) for host in request.candidate_hosts)


def positive_peers(snapshot: Snapshot, vms: tuple[str, ...]) -> dict[str, tuple[Reason, ...]]:
    """Hosts that VMs must join their peers on, by host, with who is there; empty if nobody runs yet."""
    found: defaultdict[str, list[Reason]] = defaultdict(list)
    for vm in vms:
        for group, peer in _unified_peers(snapshot, vm, vms):
            for host in destinations(snapshot, peer):
                found[host].append(Reason(Kind.POSITIVE_PEER_HERE, group, peer, host))
    return {host: tuple(dict.fromkeys(peers)) for host, peers in found.items()}


def negative_peers(snapshot: Snapshot, vms: tuple[str, ...]) -> dict[str, tuple[Reason, ...]]:
    """Hosts that VMs must not run on because of a peer there, by host, with who is there."""
    found: defaultdict[str, list[Reason]] = defaultdict(list)
    for group in _hard_groups(snapshot, vms, positive=False):
        for peer in members(snapshot)[group.id]:
            if peer not in vms:
                for host in occupied(snapshot, peer):
                    found[host].append(Reason(Kind.NEGATIVE_PEER_HERE, group.id, peer, host))
    return {host: tuple(peers) for host, peers in found.items()}


def _hard_groups(snapshot: Snapshot, vms: tuple[str, ...], *, positive: bool) -> Iterator[AffinityGroup]:
    """Hard groups of any of the VMs, each once."""
    groups = (group for vm in vms for group in groups_of(snapshot).get(vm, ()))
    distinct = {
        group.id: group for group in groups if group.vms_rule.hard and group.vms_rule.positive is positive
    }
    yield from distinct.values()


def _unified_peers(snapshot: Snapshot, vm: str, vms: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Each other member of a VM's unified group, with a group to name: a common one where there is one."""
    unified = hard_positive_group_of(snapshot).get(vm)
    if unified is None:
        return
    direct = {
        peer: group.id
        for group in _hard_groups(snapshot, (vm,), positive=True)
        for peer in members(snapshot)[group.id]
    }
    for peer in unified.vms:
        if peer not in vms:
            yield direct.get(peer) or next(_hard_groups(snapshot, (peer,), positive=True)).id, peer


def _must_part(snapshot: Snapshot, vms: tuple[str, ...]) -> Iterator[Reason]:
    for group in _hard_groups(snapshot, vms, positive=False):
        inside = [vm for vm in members(snapshot)[group.id] if vm in vms]
        if len(inside) > 1:
            yield Reason(Kind.REQUEST_MUST_PART, group.id, inside[0])


def _unknown_targets(snapshot: Snapshot, *peers_by_host: dict[str, tuple[Reason, ...]]) -> Iterator[Reason]:
    for peer in dict.fromkeys(
        peer for by_host in peers_by_host for found in by_host.values() for peer in found
    ):
        if peer.vm is not None and target_unknown(snapshot, peer.vm):
            yield Reason(Kind.MIGRATION_TARGET_UNKNOWN, peer.group, peer.vm, peer.host)


def _agreeing(gathered: dict[str, tuple[Reason, ...]], host: str) -> Iterator[Reason]:
    """Who the VMs join here, and, of a group that is split already, who stays elsewhere."""
    for there, peers in gathered.items():
        peer = peers[0]
        yield peer if there == host else Reason(Kind.POSITIVE_PEERS_SPLIT, peer.group, peer.vm, peer.host)
