"""Moves a VM that is down to another cluster, which costs it, silently, all its affinity groups and labels.

Source: the engine's ChangeVMClusterCommand and ChangeVmClusterValidator. Networks and architecture are not
asked for: here every cluster has all networks, and the state file knows of no architecture.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from . import refusals
from .backend import Backend
from .entities import AffinityGroup, AffinityLabel, Caller, Cluster, Vm
from .event_codes import EventCode
from .state import State

#: What a VM is a member of.
_Set = TypeVar("_Set", AffinityGroup, AffinityLabel)


class ChangeClusterCommand:
    """The caller holds the engine's lock, and has made sure that nothing else holds the VM."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def run(self, vm: Vm, cluster_id: str, caller: Caller) -> Vm:
        """Change the cluster; one that is the VM's already changes nothing. Raises `Rejected`."""
        if cluster_id == vm.cluster:
            return vm
        self._validate(vm, cluster_id)
        moved = replace(
            vm,
            cluster=cluster_id,
            pinned_hosts=(),
            cpu_profile=first_cpu_profile(self._state, cluster_id),
        )
        self._state.put_vm(moved)
        leave_groups_and_labels(self._state, vm.id)
        cleared = EventCode.USER_UPDATE_VM_CLUSTER_DEFAULT_HOST_CLEARED
        code = cleared if vm.pinned_hosts else EventCode.USER_UPDATE_VM
        self._backend.audit_log.log(code, caller, vm=moved)
        return moved

    def _validate(self, vm: Vm, cluster_id: str) -> None:
        if vm.status != "down":
            raise refusals.vm_must_be_down()
        target = self._state.clusters.get(cluster_id)
        if target is None:
            raise refusals.invalid_cluster()
        present: Cluster = self._state.clusters[vm.cluster]
        if target.data_center != present.data_center:
            raise refusals.cluster_of_another_data_center()


def first_cpu_profile(state: State, cluster_id: str) -> str | None:
    """The one that a VM gets there: the state file knows a cluster's CPU profiles by its VMs alone."""
    found = {vm.cpu_profile for vm in state.vms.values() if vm.cluster == cluster_id}
    return min((profile for profile in found if profile is not None), default=None)


def leave_groups_and_labels(state: State, vm_id: str) -> None:
    """Take a VM out of all affinity groups and labels, which no event reports."""
    _leave(state, state.groups, vm_id)
    _leave(state, state.labels, vm_id)


def _leave(state: State, table: dict[str, _Set], vm_id: str) -> None:
    for one in tuple(table.values()):
        if vm_id in one.vms:
            left = tuple(member for member in one.vms if member != vm_id)
            state.put(table, replace(one, vms=left))
