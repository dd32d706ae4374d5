"""The engine's own weight VmAffinityGroups, in whose place our `SoftAffinityWeight` stands.

Source: VmAffinityWeightPolicyUnit. All enabled groups count, hard and soft alike, whatever their cluster; of
their members those that run in the cluster of the VM, and pending ones, which the engine takes to be
movable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.affinity.priorities import fixed_point
from ovirt_placement.rules.built_in.peers import peers_by_host
from ovirt_placement.rules.ranks import competition_ranks
from ovirt_placement.rules.verdict import Request

#: Priorities of violated groups from the highest down, fixed positive peers and positive peers, both negated.
Burden = tuple[tuple[int, ...], int, int]


def scores(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """The engine's weight of each candidate host, the best first: 1, and how many hosts are better."""
    groups = {
        group.id: group
        for vm in request.vms
        for group in snapshot.groups_of_vm.get(vm, ())
        if group.vms_rule.enabled
    }
    there = {name: peers_by_host(snapshot, group, request.vms) for name, group in groups.items()}
    # Most hosts have none of the peers, and all of these the same burden.
    without = _burden(snapshot, groups, {})
    burdens = dict.fromkeys(request.candidate_hosts, without)
    for host in frozenset().union(*there.values()).intersection(burdens):
        here = {name: peers[host] for name, peers in there.items() if host in peers}
        burdens[host] = _burden(snapshot, groups, here)
    return competition_ranks(burdens)


def _burden(
    snapshot: Snapshot, groups: dict[str, AffinityGroup], here: Mapping[str, Sequence[str]]
) -> Burden:
    """The burden of a host with these peers of each group."""
    violated = [
        fixed_point(group.priority)
        for name, group in groups.items()
        if (name in here) is not group.vms_rule.positive
    ]
    joined = {vm for name, peers in here.items() if groups[name].vms_rule.positive for vm in peers}
    fixed = sum(vm not in snapshot.pending_hosts and not snapshot.vm_by_id[vm].movable for vm in joined)
    return tuple(sorted(violated, reverse=True)), -fixed, -len(joined)
