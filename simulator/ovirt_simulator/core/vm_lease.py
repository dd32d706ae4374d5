"""Leases of VMs on storage domains, which keep a highly available VM from running twice.

Source: the engine's VmManagementCommandBase and UpdateVmCommand. When VMs restart does not depend on them
here, because fencing never fails.
"""

from __future__ import annotations

from . import storage_domains
from .entities import Vm
from .refusals import bad_parameters, conflict
from .state import State


def check(state: State, before: Vm | None, vm: Vm, action: str) -> None:
    """Refuse a lease of what is not highly available, on a domain that is not there or not active."""
    lease, present = vm.particulars.lease, "" if before is None else before.particulars.lease
    if not lease:
        return
    if not vm.ha:
        raise conflict(
            "ACTION_TYPE_FAILED_VM_LEASES_ARE_NOT_SUPPORTED_WITH_HA_OFF",
            f"Cannot {action} VM. A VM lease was defined but high availability option is set to false.",
        )
    if lease == present:
        return
    center = state.clusters[vm.cluster].data_center
    known = {domain.id: domain for domain in storage_domains.all_of(state) if domain.data_center == center}
    if lease not in known:
        raise bad_parameters(
            "ACTION_TYPE_FAILED_STORAGE_DOMAIN_NOT_EXIST",
            f"Cannot {action} VM. Storage Domain doesn't exist.",
        )
    if known[lease].status != "active":
        raise conflict(
            "ACTION_TYPE_FAILED_INVALID_VM_LEASE_STORAGE_DOMAIN_STATUS",
            f"Cannot {action} VM. The VM lease storage domain ({known[lease].name}) status is not active.",
        )
    if present and before is not None and before.runs:
        raise conflict(
            "ACTION_TYPE_FAILED_HOT_SWAPPING_VM_LEASES_NOT_SUPPORTED",
            f"Cannot {action} VM. Hot swapping of VM leases is not supported,"
            " please remove the current lease and then set a new one.",
        )
