"""The engine's own weight VmToHostsAffinityGroups, in whose place our `HostAffinityWeight` stands.

Source: VmToHostAffinityWeightPolicyUnit. The weights of several VMs are added.
"""

from __future__ import annotations

from collections.abc import Sequence

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.priorities import fixed_point
from ovirt_placement.rules.built_in.sums import summed
from ovirt_placement.rules.ranks import competition_ranks
from ovirt_placement.rules.verdict import Request


def scores(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """The engine's weight of each candidate host: the smaller, the better."""
    return summed(ranks_for(snapshot, vm, request.candidate_hosts) for vm in request.vms)


def ranks_for(snapshot: Snapshot, vm: str, hosts: Sequence[str]) -> dict[str, int]:
    """For one VM, the best first: 1, and how many hosts violate soft groups of less priority or fewer."""
    listed = [
        (snapshot.group_hosts[group.id], group.hosts_rule.positive, fixed_point(group.priority))
        for group in snapshot.groups_of_vm.get(vm, ())
        if group.hosts_rule.soft
    ]
    return competition_ranks(
        {
            host: tuple(
                sorted(
                    (priority for its, positive, priority in listed if (host in its) is not positive),
                    reverse=True,
                )
            )
            for host in hosts
        }
    )
