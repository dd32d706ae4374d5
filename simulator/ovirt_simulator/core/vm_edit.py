"""What a client says of a VM that it changes, and what comes of it."""

from __future__ import annotations

import msgspec
from msgspec.structs import asdict, replace

from . import refusals
from .entities import Vm
from .state import State

#: The engine's VmPriorityMaxValue.
HIGHEST_PRIORITY = 100


class VmEdit(msgspec.Struct, frozen=True, kw_only=True):
    """A change to a VM; what is None stays as it is."""

    name: str | None = None
    description: str | None = None
    ha: bool | None = None
    ha_priority: int | None = None
    migratable: bool | None = None
    pinned_hosts: tuple[str, ...] | None = None
    memory_mb: int | None = None
    guaranteed_mb: int | None = None
    custom_properties: dict[str, str] | None = None

    def applied(self, vm: Vm) -> Vm:
        """Give the VM as it is after the change."""
        return replace(vm, **{name: value for name, value in asdict(self).items() if value is not None})


def check(state: State, before: Vm, vm: Vm, action: str) -> None:
    """Refuse what the engine's UpdateVmCommand refuses."""
    if before.name != vm.name and any(
        vm.name == known.name and vm.id != known.id for known in state.vms.values()
    ):
        raise refusals.vm_name_used(action)
    if before.pinned_hosts != vm.pinned_hosts:
        _check_hosts(state, vm, action)
    if vm.guaranteed_mb > vm.memory_mb:
        raise refusals.guaranteed_above_memory(action)
    if not 0 <= vm.ha_priority <= HIGHEST_PRIORITY:
        raise refusals.illegal_priority(action, HIGHEST_PRIORITY)


def _check_hosts(state: State, vm: Vm, action: str) -> None:
    for host_id in vm.pinned_hosts:
        host = state.hosts.get(host_id)
        if host is None:
            raise refusals.invalid_host(action)
        if host.cluster != vm.cluster:
            raise refusals.hosts_of_another_cluster(action)
