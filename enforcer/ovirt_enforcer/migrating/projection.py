"""The cluster as it will be once what is under way has ended: what plans are made for meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.model import Pending, Snapshot, Vm
from ovirt_placement.model.names import host_name
from ovirt_placement.rules.memory import with_arrived
from ovirt_placement.store.intents import Intent


class Projection(NamedTuple):
    snapshot: Snapshot
    #: VMs that are on their way, and are to be left alone until they are there, with that as the reason.
    moving: Mapping[str, str]


def projected(snapshot: Snapshot, open_intents: Iterable[Intent]) -> Projection:
    """Let every VM be where it is going, as far as that is known; its room on the source is not free yet.

    A VM that is only expected somewhere stays where it is shown, and is left alone, too.
    """
    ours = {intent.vm: intent.target for intent in open_intents}
    going = {vm.id: target for vm in snapshot.vms if (target := _target(snapshot, vm, ours)) is not None}
    expected = {vm: going.pop(vm) for vm in snapshot.unconfirmed - ours.keys() if vm in going}
    reasons = {
        vm: f"it is expected on {host_name(target, snapshot)}, not confirmed"
        for vm, target in expected.items()
    }
    if not going:
        return Projection(snapshot, reasons)
    ahead = replace(
        snapshot,
        vms=tuple(_arrived(vm, going[vm.id]) if vm.id in going else vm for vm in snapshot.vms),
        pending=tuple(entry for entry in snapshot.pending if entry.vm not in going),
    )
    reasons |= {vm: f"it is on its way to {host_name(target, snapshot)}" for vm, target in going.items()}
    return Projection(ahead, reasons)


def with_begun(snapshot: Snapshot, vms: Iterable[str], target: str) -> Snapshot:
    """The snapshot with a migration that has begun since: it takes its room on the target."""
    begun = [snapshot.vm_by_id[vm] for vm in vms]
    return replace(
        snapshot,
        pending=(
            *snapshot.pending,
            *(Pending(vm=vm.id, host=target, memory_mb=vm.memory_mb) for vm in begun),
        ),
        hosts=tuple(with_arrived(host, *begun) if host.id == target else host for host in snapshot.hosts),
    )


def _target(snapshot: Snapshot, vm: Vm, ours: Mapping[str, str]) -> str | None:
    """Where a running VM is going; None if it stays, or nobody says."""
    if vm.host is None:
        return None
    pending = snapshot.pending_hosts.get(vm.id, ())
    target = ours.get(vm.id) or (pending[-1] if pending else None)
    return None if target == vm.host or target not in snapshot.host_by_id else target


def _arrived(vm: Vm, target: str) -> Vm:
    return replace(vm, host=target, status="up", migrating_to=None)
