"""Finds on which host running VMs started, perhaps another one: sticky keys are copied from there."""

from __future__ import annotations

from collections.abc import Iterable

from ovirt_placement.engine.reading.events import EngineEvent
from ovirt_placement.model import Vm

#: How much earlier than its run the engine may date the event that reports it.
_EARLIER_SECONDS = 10.0


def start_hosts(vms: Iterable[Vm], starts: Iterable[EngineEvent]) -> dict[str, str]:
    """Host ids by VM, from events of starts, oldest first; without VMs whose start is not among them.

    An event of an earlier run is not taken for one of the present run, whose own may not show yet.
    """
    latest = {event.vm: event for event in starts if event.host is not None}
    found = {}
    for vm in vms:
        event = latest.get(vm.id)
        if event is None or event.host is None:
            continue
        if vm.running_since is None or event.time >= vm.running_since - _EARLIER_SECONDS:
            found[vm.id] = event.host
    return found
