"""Which VMs went down without anyone asking: the engine shows it by events alone."""

from __future__ import annotations

from ovirt_placement.engine.event_codes import EventCode
from ovirt_placement.engine.reading.events import VM_STARTED, EngineEvent
from ovirt_placement.model import Vm

#: It died, or its host did and was fenced. Source: the engine's AuditLogType.
_CRASHED = frozenset({EventCode.VM_DOWN_ERROR, EventCode.VM_WAS_SET_DOWN_DUE_TO_HOST_REBOOT_OR_MANUAL_FENCE})
#: It runs again, or went down because somebody wanted it.
_OVER = VM_STARTED | {EventCode.VM_DOWN}


class Crashes:
    """The VMs that are down since they crashed, as far as events reported it."""

    def __init__(self) -> None:
        #: By VM, the newest event that says anything of it, and whether that was a crash.
        self._newest: dict[str, tuple[int, bool]] = {}

    def report(self, event: EngineEvent) -> None:
        """Take what an event reports; in whatever order, what one with a higher id has reported stands."""
        if event.vm is None or event.code not in _CRASHED | _OVER:
            return
        known = self._newest.get(event.vm)
        if known is None or known[0] < event.id:
            self._newest[event.vm] = event.id, event.code in _CRASHED

    def forget(self, vm_id: str) -> None:
        """Forget a VM that is gone."""
        self._newest.pop(vm_id, None)

    def include(self, vm: Vm) -> bool:
        """Whether a VM, as it was read, is down since it crashed."""
        known = self._newest.get(vm.id)
        return vm.status == "down" and vm.host is None and known is not None and known[1]
