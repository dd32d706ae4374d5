"""What the engine's answer about a host, or a VM, says of an action that it was asked for."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from ovirt_placement.engine.writing.hosts import HostState
from ovirt_placement.engine.writing.migration import VmState
from ovirt_placement.store.intents import IntentKind


class Progress(StrEnum):
    """How far an action is."""

    NOT_BEGUN = "not begun"
    UNDER_WAY = "under way"
    DONE = "done"
    FAILED = "failed"


#: Statuses of a host by what they say; all others are on the way.
_DEACTIVATION: Final = {
    "maintenance": Progress.DONE,
    "preparing_for_maintenance": Progress.UNDER_WAY,
}
_ACTIVATION: Final = {
    "up": Progress.DONE,
    "maintenance": Progress.NOT_BEGUN,
    "preparing_for_maintenance": Progress.NOT_BEGUN,
    "install_failed": Progress.FAILED,
}
_UPGRADE: Final = {"up": Progress.DONE, "install_failed": Progress.FAILED}


def progress_of_host(kind: IntentKind, seen: HostState | None) -> Progress:
    """How far an action on a host is; one that is gone has failed."""
    if seen is None:
        return Progress.FAILED
    if kind is IntentKind.DEACTIVATE_HOST:
        return _DEACTIVATION.get(seen.status, Progress.NOT_BEGUN)
    if kind is IntentKind.ACTIVATE_HOST:
        return _ACTIVATION.get(seen.status, Progress.UNDER_WAY)
    if seen.status == "maintenance":
        return Progress.NOT_BEGUN if seen.update_available else Progress.DONE
    return _UPGRADE.get(seen.status, Progress.UNDER_WAY)


def progress_of_vm(kind: IntentKind, seen: VmState | None) -> Progress:
    """How far the stop or start of a VM is; one that is gone is stopped."""
    if kind is IntentKind.STOP_VM:
        if seen is None or seen.status == "down":
            return Progress.DONE
        return Progress.UNDER_WAY if seen.status == "powering_down" else Progress.NOT_BEGUN
    if seen is None:
        return Progress.FAILED
    if seen.host is not None:
        return Progress.DONE
    return Progress.NOT_BEGUN if seen.status == "down" else Progress.UNDER_WAY
