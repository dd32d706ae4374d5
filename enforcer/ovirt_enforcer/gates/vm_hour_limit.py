"""Holds a VM that was migrated often: whatever asks for it again and again is not mended by one more time."""

from __future__ import annotations

from collections.abc import Mapping

from ovirt_enforcer.gates.gate import Facts, VmGate
from ovirt_enforcer.gates.history import HOUR_SECONDS, begun_within, by_vm
from ovirt_enforcer.settings import EnforcerSettings


class VmHourLimitGate(VmGate):
    name = "vm_limit"

    def held(self, facts: Facts) -> Mapping[str, str]:
        counts = {vm: begun_within(intents, HOUR_SECONDS) for vm, intents in by_vm(facts.begun).items()}
        return {
            vm: f"migrated {count} times in the last hour, as often as vm_migrations_per_hour allows"
            for vm, count in counts.items()
            if count >= facts.settings.vm_migrations_per_hour
        }

    def reach_seconds(self, settings: EnforcerSettings) -> float:
        return HOUR_SECONDS
