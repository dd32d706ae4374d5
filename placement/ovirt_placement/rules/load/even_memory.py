"""The engine's weight OptimalForMemoryEvenDistribution: a VM goes where most memory would be left.

Source: EvenDistributionMemoryWeightPolicyUnit.
"""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.java.numbers import quotient, rounded, single, wrapped
from ovirt_placement.rules.memory import required_mb
from ovirt_placement.rules.verdict import Request

#: The engine's MaxSchedulerWeight.
_WORST = 1000
#: What the fullest host has to hand out if there is none.
_NO_HOST = 2


def scores(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """The engine's weight of each candidate host that is known: the smaller, the better.

    The memory of VMs that are to be placed counts on every host but their own; huge pages make no difference.
    """
    vms = [snapshot.vm_by_id[vm] for vm in request.vms if vm in snapshot.vm_by_id]
    hosts = [snapshot.host_by_id[host] for host in request.candidate_hosts if host in snapshot.host_by_id]
    most = max((host.free_mb for host in hosts), default=_NO_HOST)
    return {
        host.id: host_score(host.free_mb, most, sum(required_mb(vm) for vm in vms if vm.host != host.id))
        for host in hosts
    }


def host_score(free_mb: int, most_free_mb: int, added_mb: int) -> int:
    """The weight of one host, where the candidate with most memory to hand out has so much.

    Numbers are those of the engine: of single precision, and rounded to a thousand steps, so that hosts tie
    which differ by little.
    """
    left = single(single(single(free_mb) - added_mb) - 1)
    share = single(quotient(single(left * (_WORST - 1)), single(single(most_free_mb) - 1)))
    return wrapped(_WORST - rounded(share))
