"""Closed in a dry run: nothing is migrated before the configuration says so."""

from __future__ import annotations

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.planning.plan import Step
from ovirt_enforcer.settings import Mode


class ModeGate(Gate):
    name = "mode"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        if facts.settings.mode is Mode.ENFORCE:
            return None
        return 'dry run: set mode = "enforce" under [enforcer] to let it'
