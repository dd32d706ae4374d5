"""The engine's own weights that look at groups of VMs, at kinds of VMs, and at lists of hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.built_in import ha_weight, preferred_hosts, vm_affinity_weight, vm_to_hosts_weight
from ovirt_placement.rules.ha.vms import ha_vms_of
from ovirt_placement.rules.locations import destinations
from ovirt_placement.rules.parameters import whole_number
from ovirt_placement.rules.rank_selector import points_of
from ovirt_placement.rules.verdict import Request

Scores = Callable[[Snapshot, Request], Mapping[str, int]]


def group_points(
    base: Snapshot, laid: Callable[[], Snapshot], vm: Vm, hosts: tuple[str, ...]
) -> dict[str, Sequence[int]]:
    """What the engine's weights of the policy give to the hosts, in their order, where they distinguish them.

    To the engine's VM affinity, VMs on their way count as there. Its HA weight counts what runs, which a VM
    does within a moment, as soon as its host has been asked to start it.
    """
    cluster = base.cluster_by_id[vm.cluster]
    groups = base.groups_of_vm.get(vm.id, ())
    asked: dict[str, tuple[Scores, Snapshot]] = {}
    if any(group.vms_rule.enabled for group in groups):
        asked["vm_affinity_weight"] = vm_affinity_weight.scores, laid()
    if any(group.hosts_rule.soft for group in groups):
        asked["vm_to_host_weight"] = _host_ranks, base
    if vm.ha and cluster.ha_reservation:
        asked["ha_weight"] = _ha_scores, laid()
    if vm.pinned_hosts:
        asked["preferred_hosts_weight"] = preferred_hosts.scores, base
    request = Request((vm.id,), hosts, parameters=cluster.scheduling_properties)
    return {
        name: list(points_of([found.get(host, 0) for host in hosts], factor))
        for name, (scores, snapshot) in asked.items()
        if (factor := cluster.policy.get(name, 0)) and (found := scores(snapshot, request))
    }


def _host_ranks(snapshot: Snapshot, request: Request) -> Mapping[str, int]:
    """The engine's VM-to-host affinity, in no order."""
    (vm,) = request.vms
    return vm_to_hosts_weight.ranks_for(snapshot, vm, request.candidate_hosts)


def _ha_scores(snapshot: Snapshot, request: Request) -> Mapping[str, int]:
    """The engine's HA weight, with VMs on their way as if they ran there already."""
    (vm,) = request.vms
    cluster, there = snapshot.vm_by_id[vm].cluster, ha_vms_of(snapshot)
    counts = {host: len(there.get((cluster, host), ())) for host in request.candidate_hosts}
    for host in destinations(snapshot, vm):
        if host in counts:
            counts[host] -= 1
    return ha_weight.scaled(counts, max(1, whole_number(request.parameters, "ScaleDown", 1)))
