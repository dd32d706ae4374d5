"""Who is on a host, or on the way to it, and which keys they bring."""

from __future__ import annotations

from collections import defaultdict

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.index import once_per_snapshot
from ovirt_placement.rules.locations import destinations, occupied
from ovirt_placement.rules.placement_keys.compile import compile_keys
from ovirt_placement.rules.placement_keys.hierarchy import keys_of
from ovirt_placement.rules.placement_keys.node_keys import FrozenSet
from ovirt_placement.rules.verdict import Struct


class Presence(Struct, frozen=True):
    """What one VM takes of a host, and the keys that it brings.

    A migrating VM holds memory and CPUs at both ends; its keys move to the target at once.
    """

    vm: str
    memory_mb: int
    vcpus: int
    frozen: FrozenSet
    #: Not there yet: nothing of the host's memory is used so far, only promised.
    arriving: bool


@once_per_snapshot
def presences(snapshot: Snapshot) -> dict[str, tuple[Presence, ...]]:
    """Presences by host id. Paused VMs count: they hold memory."""
    present = defaultdict(list)
    promised = {(entry.vm, entry.host): entry.memory_mb for entry in snapshot.pending}
    for vm in snapshot.vms:
        hosts = occupied(snapshot, vm.id)
        if not hosts:
            continue
        keys, with_keys = frozen_set(snapshot, vm), destinations(snapshot, vm.id)
        for host in hosts:
            arriving = host != vm.host
            promise = promised.get((vm.id, host)) if arriving else None
            taken = vm.memory_mb if promise is None else promise
            brought = keys if host in with_keys else ()
            present[host].append(Presence(vm.id, taken, vm.vcpus, brought, arriving))
    return {host: tuple(there) for host, there in present.items()}


def frozen_set(snapshot: Snapshot, vm: Vm) -> FrozenSet:
    """The customer keys that a VM brings to its host.

    A running VM brings those recorded when it started, or its present ones if nobody recorded them. One
    that is just starting brings its present ones: a record would be of an earlier run.
    """
    recorded = _recorded(snapshot).get(vm.id) if vm.host is not None else None
    return present_set(snapshot, vm) if recorded is None else recorded


def present_set(snapshot: Snapshot, vm: Vm) -> FrozenSet:
    """What a VM that starts now would bring."""
    compiled = compile_keys(keys_of(snapshot, vm)).customer
    return tuple((key.name, float(key.value)) for key in compiled.values())


@once_per_snapshot
def _recorded(snapshot: Snapshot) -> dict[str, FrozenSet]:
    return {record.vm: record.keys for record in snapshot.frozen_keys}
