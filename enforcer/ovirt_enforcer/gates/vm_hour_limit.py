"""Holds a VM that was migrated often: one more migration does not repair what asks for it again and again."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from ovirt_enforcer.gates.gate import Facts, VmGate
from ovirt_enforcer.gates.history import HOUR_SECONDS, begun_within, by_vm, seconds_until_fewer
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model.amounts import counted


class VmHourLimitGate(VmGate):
    name = "vm_limit"

    def frozen(self, facts: Facts) -> Mapping[str, str]:
        counts = {vm: begun_within(intents, HOUR_SECONDS) for vm, intents in by_vm(facts.begun).items()}
        return {
            vm: f"migrated {counted(count, 'time')} in the last hour, as often as"
            " vm_migrations_per_hour allows"
            for vm, count in counts.items()
            if count >= facts.settings.vm_migrations_per_hour
        }

    def seconds_left(self, facts: Facts, cluster: str) -> float:
        limit = facts.settings.vm_migrations_per_hour
        of_vms = by_vm(facts.begun_in(cluster)).values()
        return min((seconds_until_fewer(begun, HOUR_SECONDS, limit) for begun in of_vms), default=inf)

    def reach_seconds(self, settings: EnforcerSettings) -> float:
        return HOUR_SECONDS
