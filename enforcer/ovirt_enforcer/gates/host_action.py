"""What is to be done with a host, or with a VM of it that cannot migrate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ovirt_placement.store.intents import IntentKind

_TITLES: Final = {
    IntentKind.DEACTIVATE_HOST: "deactivation of host {host}",
    IntentKind.UPGRADE_HOST: "upgrade of host {host}",
    IntentKind.ACTIVATE_HOST: "activation of host {host}",
    IntentKind.STOP_VM: "shutdown of {vm} for the maintenance of host {host}",
    IntentKind.START_VM: "start of {vm} after the maintenance of host {host}",
    IntentKind.RUN_COMMAND: "command for host {host}",
    IntentKind.MIGRATE_VM: "migration of {vm} to {host}",
}


@dataclass(frozen=True, slots=True)
class HostAction:
    """One action; of kind `MIGRATE_VM`, which asks the engine for nothing, it is to empty the host."""

    kind: IntentKind
    host: str
    #: The VM that is stopped or started for it.
    vm: str = ""


def title(kind: IntentKind, vm: str, host: str) -> str:
    """What an action is called, by the names of VM and host."""
    return _TITLES[kind].format(vm=vm, host=host)
