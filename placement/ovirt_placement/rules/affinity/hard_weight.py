"""The weight of hard groups that the engine cannot see: VMs tied together through others that are down.

The engine's filter knows the peers of a VM, not the peers of its peers (docs/rules.md, F2). Our filter does,
but never refuses a host for a placement that the engine has not confirmed. So in a burst this weight leads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.groups import groups_of, hard_positive_group_of, members
from ovirt_placement.rules.locations import destinations
from ovirt_placement.rules.memory import promised_mb
from ovirt_placement.rules.ranks import ranked
from ovirt_placement.rules.rule import Rule, UnitKind
from ovirt_placement.rules.verdict import Reason, ReasonKind, Request, Weight

CHAIN_HERE = ReasonKind("chain_here", "VMs of its hard affinity groups that are here or expected: {number:g}")
CHAIN_BEGINS = ReasonKind(
    "chain_begins", "the first VM of hard affinity groups that share VMs which are down"
)

#: More than all usual weights together can give in a cluster of 700 hosts.
_FACTOR = 100_000


def rank_hosts(snapshot: Snapshot, request: Request) -> tuple[Weight, ...]:
    """Rank first the host with most VMs that must run with this one, be it through others.

    It speaks only for a VM whose unified group goes beyond its own groups; for all others hosts tie. Where
    nobody of the group is anywhere yet, the host with most free memory comes first: so the next VM knows.
    """
    (vm, *_) = request.vms
    peers = chained_peers(snapshot, vm)
    there = _there(snapshot, request.candidate_hosts, peers)
    reasons: Mapping[str, tuple[Reason, ...]]
    if there:
        reasons = {host: (Reason(CHAIN_HERE, number=count),) for host, count in there.items()}
        return ranked(
            snapshot, request.candidate_hosts, {host: -there[host] for host in there}, reasons, unburdened=0
        )
    first = _roomiest(snapshot, request.candidate_hosts) if _begins_chain(snapshot, request, peers) else None
    reasons = {} if first is None else {first: (Reason(CHAIN_BEGINS),)}
    burdens = {} if first is None else {first: -1}
    return ranked(snapshot, request.candidate_hosts, burdens, reasons, unburdened=0)


def chained_peers(snapshot: Snapshot, vm: str) -> tuple[str, ...]:
    """The others of a VM's unified hard positive group; none if all of them are in its own groups."""
    unified = hard_positive_group_of(snapshot).get(vm)
    if unified is None:
        return ()
    direct = {
        peer
        for group in groups_of(snapshot).get(vm, ())
        if group.vms_rule.hard and group.vms_rule.positive
        for peer in members(snapshot)[group.id]
    }
    if direct.issuperset(unified.vms):
        return ()
    return tuple(peer for peer in unified.vms if peer != vm)


def parting_hosts(snapshot: Snapshot, vm: str, hosts: Sequence[str]) -> frozenset[str]:
    """Those of the hosts that would tear a VM from the peers of its peers; none if these are on no host."""
    there = _there(snapshot, hosts, chained_peers(snapshot, vm))
    return frozenset(hosts).difference(there) if there else frozenset()


def _there(snapshot: Snapshot, hosts: Sequence[str], peers: tuple[str, ...]) -> Counter[str]:
    """How many of the peers are on each candidate host, or to be there."""
    candidates = frozenset(hosts) if peers else frozenset()
    return Counter(host for peer in peers for host in destinations(snapshot, peer) if host in candidates)


def _begins_chain(snapshot: Snapshot, request: Request, peers: tuple[str, ...]) -> bool:
    """Whether a VM is the first of such a group.

    Not if the engine alone knows by now where peers of its own groups are: let it choose.
    """
    (vm, *_) = request.vms
    unconfirmed = snapshot.unconfirmed - {vm}
    return bool(peers) and unconfirmed.isdisjoint(
        peer
        for group in groups_of(snapshot).get(vm, ())
        if group.vms_rule.enabled
        for peer in members(snapshot)[group.id]
    )


def _roomiest(snapshot: Snapshot, hosts: Sequence[str]) -> str | None:
    """The host with most memory that is not expected to be taken; one for failover only if all are."""
    free = {host: known.free_mb for host in hosts if (known := snapshot.host_by_id.get(host)) is not None}
    for entry in snapshot.pending:
        if entry.expected and entry.host in free:
            free[entry.host] -= promised_mb(snapshot.vm_by_id[entry.vm], entry)
    return max(
        free, key=lambda host: (not snapshot.host_by_id[host].failover, free[host], host), default=None
    )


RULE = Rule(
    name="HardAffinityWeight",
    kind=UnitKind.WEIGHT,
    usual_factor=_FACTOR,
    weight=rank_hosts,
)
