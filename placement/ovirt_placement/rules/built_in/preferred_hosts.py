"""The engine's weight PreferredHosts: a VM that starts goes to a host of its own list, if there is one.

Source: PreferredHostsWeightPolicyUnit. Whether the VM may be migrated makes no difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.built_in.sums import summed
from ovirt_placement.rules.verdict import Request

_NOT_PREFERRED = 10_000


def scores(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """The engine's weight of each candidate host: the smaller, the better; none if no VM is down."""
    vms = (snapshot.vm_by_id[vm] for vm in request.vms if vm in snapshot.vm_by_id)
    return summed(of_vm(vm, request.candidate_hosts) for vm in vms)


def of_vm(vm: Vm, hosts: Sequence[str]) -> dict[str, int]:
    """What the hosts weigh for one VM: nothing is said of one that is not down."""
    if vm.status != "down":
        return {}
    preferred = vm.pinned_hosts or hosts
    return {host: 0 if host in preferred else _NOT_PREFERRED for host in hosts}
