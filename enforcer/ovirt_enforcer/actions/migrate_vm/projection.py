"""The cluster as it will be once what is under way has ended: what plans are made for meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.names import host_name
from ovirt_placement.rules.world import World
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
    ahead = World(snapshot).arrived(going, source_freed=False).snapshot
    reasons |= {vm: f"it is on its way to {host_name(target, snapshot)}" for vm, target in going.items()}
    return Projection(ahead, reasons)


def _target(snapshot: Snapshot, vm: Vm, ours: Mapping[str, str]) -> str | None:
    """Where a running VM is going; None if it stays, or nobody says."""
    if vm.host is None:
        return None
    pending = snapshot.pending_hosts.get(vm.id, ())
    target = ours.get(vm.id) or (pending[-1] if pending else None)
    return None if target == vm.host or target not in snapshot.host_by_id else target
