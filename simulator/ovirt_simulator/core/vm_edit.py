"""What a client says of a VM that it adds or changes, and what comes of it."""

from __future__ import annotations

import msgspec
from msgspec.structs import asdict, replace

from . import refusals, vm_lease
from .entities import Vm
from .state import State
from .video import video_mb

_OF_THE_VM = (
    "name",
    "description",
    "ha",
    "ha_priority",
    "migratable",
    "pinned_hosts",
    "memory_mb",
    "guaranteed_mb",
    "custom_properties",
    "cpu_profile",
    "quota",
    "instance_type",
    "threads_per_core",
    "io_threads",
)
#: The fields of a VM that are its configuration: what edits change.
CONFIGURATION = (*_OF_THE_VM, "vcpus", "video_mb", "particulars")


#: The engine's VmPriorityMaxValue.
HIGHEST_PRIORITY = 100


class VmEdit(msgspec.Struct, frozen=True, kw_only=True):
    """A change to a VM; what is None stays as it is, and the empty word takes a reference away."""

    name: str | None = None
    description: str | None = None
    comment: str | None = None
    ha: bool | None = None
    ha_priority: int | None = None
    migratable: bool | None = None
    pinned_hosts: tuple[str, ...] | None = None
    memory_mb: int | None = None
    guaranteed_mb: int | None = None
    max_memory_mb: int | None = None
    ballooning: bool | None = None
    sockets: int | None = None
    cores: int | None = None
    threads_per_core: int | None = None
    io_threads: int | None = None
    cpu_mode: str | None = None
    custom_properties: dict[str, str] | None = None
    cpu_profile: str | None = None
    quota: str | None = None
    instance_type: str | None = None
    type: str | None = None
    os: str | None = None
    console: bool | None = None
    soundcard: bool | None = None
    initialization: str | None = None
    lease: str | None = None
    immovable: str | None = None
    delete_protected: bool | None = None
    #: By their paths, what is given of elements on which nothing depends.
    others: dict[str, str] | None = None

    def applied(self, vm: Vm) -> Vm:
        """Give the VM as it is after the change."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        sockets = given.pop("sockets", vm.sockets)
        direct = {name: value or None if value == "" else value for name, value in given.items()}
        plain = {name: direct[name] for name in _OF_THE_VM if name in direct}
        if self.description == "":
            plain["description"] = ""
        others = {name: value for name, value in given.items() if name not in _OF_THE_VM}
        others["others"] = {**vm.particulars.others, **(self.others or {})}
        particulars = replace(vm.particulars, **others)
        video = video_mb(particulars.others, particulars.os, vm.video_mb)
        changed = replace(vm, **plain, particulars=particulars, video_mb=video)
        return replace(changed, vcpus=sockets * particulars.cores * changed.threads_per_core)


def check(state: State, before: Vm | None, vm: Vm, action: str) -> None:
    """Refuse what the engine's AddVmCommand and UpdateVmCommand refuse; `before` is None for a new VM."""
    renamed = before is None or before.name != vm.name
    if renamed and any(vm.name == known.name and vm.id != known.id for known in state.vms.values()):
        raise refusals.vm_name_used(action)
    if before is None or before.pinned_hosts != vm.pinned_hosts:
        _check_hosts(state, vm, action)
    if before is None or _memory(before) != _memory(vm):
        _check_memory(vm, action)
    if not 0 <= vm.ha_priority <= HIGHEST_PRIORITY:
        raise refusals.illegal_priority(action, HIGHEST_PRIORITY)
    vm_lease.check(state, before, vm, action)


def _memory(vm: Vm) -> tuple[int, int, int | None]:
    return vm.memory_mb, vm.guaranteed_mb, vm.particulars.max_memory_mb


def _check_memory(vm: Vm, action: str) -> None:
    memory, guaranteed, most = _memory(vm)
    if guaranteed > memory:
        raise refusals.guaranteed_above_memory(action)
    if most is not None and most < memory:
        raise refusals.memory_above_maximum(action, memory, most)


def _check_hosts(state: State, vm: Vm, action: str) -> None:
    for host_id in vm.pinned_hosts:
        host = state.hosts.get(host_id)
        if host is None:
            raise refusals.invalid_host(action)
        if host.cluster != vm.cluster:
            raise refusals.hosts_of_another_cluster(action)
