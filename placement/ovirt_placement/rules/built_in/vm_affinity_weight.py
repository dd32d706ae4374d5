"""The engine's own weight VmAffinityGroups, in whose place our `SoftAffinityWeight` stands.

Source: VmAffinityWeightPolicyUnit. All enabled groups count, hard and soft alike, whatever their cluster; of
their members those that run in the cluster of the VM, and whoever is pending, whom the engine takes to be
movable.
"""

from __future__ import annotations

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.affinity.priorities import fixed_point
from ovirt_placement.rules.built_in.peers import peers_by_host
from ovirt_placement.rules.ranks import competition_ranks
from ovirt_placement.rules.verdict import Request

#: Priorities of broken groups from the highest down, fixed positive peers and positive peers, both negated.
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
    burdens = {host: _burden(snapshot, groups, there, host) for host in request.candidate_hosts}
    return competition_ranks(burdens)


def _burden(
    snapshot: Snapshot,
    groups: dict[str, AffinityGroup],
    there: dict[str, dict[str, list[str]]],
    host: str,
) -> Burden:
    broken = [
        fixed_point(group.priority)
        for name, group in groups.items()
        if bool(there[name].get(host)) is not group.vms_rule.positive
    ]
    joined = {
        vm for name, group in groups.items() if group.vms_rule.positive for vm in there[name].get(host, ())
    }
    fixed = sum(vm not in snapshot.pending_hosts and not snapshot.vm_by_id[vm].movable for vm in joined)
    return tuple(sorted(broken, reverse=True)), -fixed, -len(joined)
