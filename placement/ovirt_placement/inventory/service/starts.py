"""What events report of starts: on which host a VM really starts, or that it does not.

What was expected of it ends there, whatever the VM itself shows by now.
"""

from __future__ import annotations

from collections.abc import Callable

from ovirt_placement.engine.event_codes import EventCode
from ovirt_placement.engine.reading.events import VM_STARTED, EngineEvent

#: Takes a VM, the host that it starts on, None for none, and the moment before which that was decided.
Heard = Callable[[str, str | None, float], object]

#: The VM could not be started or restarted, or is down again. Source: the engine's AuditLogType.
_ENDED = frozenset(
    {
        EventCode.USER_FAILED_RUN_VM,
        EventCode.VM_DOWN,
        EventCode.USER_RUN_VM_AS_STATELESS_FINISHED_FAILURE,
        EventCode.VM_DOWN_ERROR,
        EventCode.USER_INITIATED_RUN_VM_FAILED,
        EventCode.VDS_INITIATED_RUN_VM_FAILED,
        EventCode.RUN_VM_FAILED,
    }
)


def reported_start(event: EngineEvent, began: float, heard: Heard) -> None:
    """Hand on what an event reports that the engine showed when it was asked at the moment `began`."""
    if event.vm is not None:
        if event.code in VM_STARTED and event.host is not None:
            heard(event.vm, event.host, began)
        elif event.code in _ENDED:
            heard(event.vm, None, began)
