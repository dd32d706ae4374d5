"""The weight of hard groups that the engine cannot see: VMs tied together through others that are down.

The engine's filter knows the peers of a VM, not the peers of its peers (docs/rules.md, F2). Our filter does,
but never refuses a host for a placement that the engine has not confirmed. So in a burst this weight leads.
"""

from collections.abc import Mapping, Sequence

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.affinity.groups import chained_peers, groups_of, members, peers_on
from ovirt_placement.rules.elements.memory import promised_mb
from ovirt_placement.rules.elements.ranks import ranked
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind, Request, Weight
from ovirt_placement.rules.placement_keys.units import draws_lots

CHAIN_HERE = ReasonKind("chain_here", "VMs of its hard affinity groups that are here or expected: {number:g}")
CHAIN_BEGINS = ReasonKind(
    "chain_begins", "the first VM of hard affinity groups that share VMs which are down"
)

#: More than all usual weights together can give in a cluster of 700 hosts.
_FACTOR = 100_000
#: Leads, too.
_KEY_WEIGHT = "PlacementKeyWeight"


def rank_hosts(snapshot: Snapshot, request: Request) -> tuple[Weight, ...]:
    """Rank first the host with most VMs that must run with this one, be it through others.

    It speaks only for a VM whose unified group goes beyond its own groups; for all others hosts tie. Where
    nobody of the group is anywhere yet, the host with most free memory comes first: so the next VM knows.
    """
    (vm, *_) = request.vms
    peers = chained_peers(snapshot, vm)
    there = peers_on(snapshot, request.candidate_hosts, peers)
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


def _begins_chain(snapshot: Snapshot, request: Request, peers: tuple[str, ...]) -> bool:
    """Whether a VM is the first of such a group.

    Not if the engine alone knows by now where peers of its own groups are: let it choose. Nor where the
    weight of its placement keys, which leads as well, puts hosts in an order: two orders add up to a tie.
    """
    (vm, *_) = request.vms
    unconfirmed = snapshot.unconfirmed - {vm}
    return (
        bool(peers)
        and unconfirmed.isdisjoint(
            peer
            for group in groups_of(snapshot).get(vm, ())
            if group.vms_rule.enabled
            for peer in members(snapshot)[group.id]
        )
        and not _is_ordered_by_keys(snapshot, request, snapshot.vm_by_id[vm])
    )


def _is_ordered_by_keys(snapshot: Snapshot, request: Request, vm: Vm) -> bool:
    """Whether the cluster's policy has the weight of placement keys, and that draws lots where hosts tie."""
    policy = snapshot.cluster_by_id[vm.cluster].scheduling_policy
    weighed = policy is not None and _KEY_WEIGHT in policy.weights
    return weighed and draws_lots(snapshot, vm.id, request.parameters)


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
