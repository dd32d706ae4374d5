"""Says a rule's reason in a sentence, with the names that an administrator knows."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import group_name, host_name, vm_name
from ovirt_placement.rules.reasons import Reason


def sentence(reason: Reason, snapshot: Snapshot) -> str:
    """What a reason says, with the names of what it is about."""
    return reason.kind.sentence.format(
        vm=vm_name(reason.vm or "", snapshot),
        host=host_name(reason.host or "", snapshot),
        group=group_name(reason.group or "", snapshot),
        number=reason.number,
        unit=reason.unit or "",
        status=reason.status or "",
    )
