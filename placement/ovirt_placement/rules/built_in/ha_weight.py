"""The engine's own weight OptimalForHaReservation, in whose place our `HaReservationWeight` stands.

Source: HaReservationWeightPolicyUnit. The VM itself counts where it runs, and pending VMs do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil

from ovirt_placement.lookups.index import once_whatever_is_pending
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.built_in.sums import summed
from ovirt_placement.rules.java.numbers import rounded, single
from ovirt_placement.rules.parameters import whole_number
from ovirt_placement.rules.verdict import Request

_FULLEST = 100
#: The parameter that weights are divided by.
_SCALE_DOWN = "ScaleDown"


def scores(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """The engine's weight of each candidate host: the smaller, the better."""
    scale_down = max(1, whole_number(request.parameters, _SCALE_DOWN, 1))
    vms = (snapshot.vm_by_id[vm] for vm in request.vms if vm in snapshot.vm_by_id)
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
