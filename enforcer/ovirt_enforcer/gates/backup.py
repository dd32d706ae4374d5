"""Holds a VM that is being backed up, as far as that is known: the engine says so when it refuses.

A VM does not show that it is being backed up, and to ask for the backups of each would take a request each.
"""

from __future__ import annotations

from collections.abc import Mapping

from ovirt_enforcer.gates.gate import Facts, VmGate
from ovirt_enforcer.gates.history import by_vm, refused
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.store.intents import Intent


class BackupGate(VmGate):
    name = "backup"

    def frozen(self, facts: Facts) -> Mapping[str, str]:
        seconds = facts.settings.cooldown_seconds
        return {
            vm: f"the engine refused, since it is being backed up; it is asked again after {seconds:.0f} s"
            for vm, intents in by_vm(facts.history).items()
            if _names_a_backup(intents[-1]) and intents[-1].age_seconds < seconds
        }

    def reach_seconds(self, settings: EnforcerSettings) -> float:
        return settings.cooldown_seconds


def _names_a_backup(intent: Intent) -> bool:
    return refused(intent) and "backup" in (intent.error or "").lower()
