"""Closed while many migrations are under way in the whole engine: they share its networks and its threads."""

from __future__ import annotations

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.history import fits
from ovirt_placement.planning.plan import Step


class EngineAtOnceGate(Gate):
    name = "engine_at_once"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        count = sum(movement.migrates for movement in facts.movements)
        if fits(count, len(step.vms), facts.settings.migrations_at_once):
            return None
        return f"migrations under way in the engine: {count}, and migrations_at_once lets no more join"
