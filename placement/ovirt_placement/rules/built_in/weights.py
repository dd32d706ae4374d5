"""Weights of the engine for a VM's own hosts and for HA reservation; how weights add up.

PreferredHosts: a VM that starts goes to a host of its own list, if there is one, whether or not it may be
migrated. OptimalForHaReservation, in whose place our `HaReservationWeight` stands: the VM itself counts where
it runs, and pending VMs do not count.

Source: PreferredHostsWeightPolicyUnit, HaReservationWeightPolicyUnit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from ovirt_placement.lookups.index import once_whatever_is_pending
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.elements.java import KeyOrder, rounded, single
from ovirt_placement.rules.elements.verdict import Request, whole_number


def summed(weights: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of the weights of several VMs by host, in the order in which the engine goes on with them.

    Source: PolicyUnitImpl.score of a group of VMs, which sums in a HashMap.
    """
    order, sums = KeyOrder(), Counter[str]()
    for of_one in weights:
        for host, weight in of_one.items():
            order.merge(host)
            sums[host] += weight
    return {host: sums[host] for host in order.listed()}


_NOT_PREFERRED = 10_000


def score_by_preference(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """The engine's weight of each candidate host: the smaller, the better; none if no VM is down."""
    return summed(of_vm(vm, request.candidate_hosts) for vm in request.known_vms(snapshot))


def of_vm(vm: Vm, hosts: Sequence[str]) -> dict[str, int]:
    """What the hosts weigh for one VM: nothing is said of one that is not down."""
    if vm.status != "down":
        return {}
    preferred = vm.pinned_hosts or hosts
    return {host: 0 if host in preferred else _NOT_PREFERRED for host in hosts}


_FULLEST = 100
#: The parameter that weights are divided by.
_SCALE_DOWN = "ScaleDown"


def score_by_ha_vms(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """The engine's weight of each candidate host: the smaller, the better."""
    scale_down = max(1, whole_number(request.parameters, _SCALE_DOWN, 1))
    vms = request.known_vms(snapshot)
    return summed(_of_vm(snapshot, vm, request.candidate_hosts, scale_down) for vm in vms)


def _of_vm(snapshot: Snapshot, vm: Vm, hosts: Sequence[str], scale_down: int) -> dict[str, int]:
    if not vm.ha or not snapshot.cluster_by_id[vm.cluster].ha_reservation:
        return dict.fromkeys(hosts, 0)
    counts = _ha_vms(snapshot)
    return scaled({host: counts[vm.cluster, host] for host in hosts}, scale_down)


@once_whatever_is_pending
def _ha_vms(snapshot: Snapshot) -> Counter[tuple[str, str]]:
    """How many highly available VMs run on a host, by their cluster and the host."""
    return Counter((vm.cluster, vm.host) for vm in snapshot.vms if vm.ha and vm.host is not None)


def scaled(counts: Mapping[str, int], scale_down: int) -> dict[str, int]:
    """The fullest candidate counts 100, the others in proportion, all scaled down and rounded up."""
    fullest = max(counts.values(), default=0) or _FULLEST
    scaled_from = {count: _scaled(count, fullest, scale_down) for count in {*counts.values()}}
    return {host: scaled_from[count] for host, count in counts.items()}


def _scaled(count: int, fullest: int, scale_down: int) -> int:
    share = rounded(single(single(single(count) / fullest) * _FULLEST))
    return ceil(single(share / scale_down))
