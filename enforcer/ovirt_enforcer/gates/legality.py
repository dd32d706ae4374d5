"""Closed for a step that the rules or the room on its target forbid: the plan is older than the facts."""

from __future__ import annotations

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_placement.planning.legality import legal
from ovirt_placement.planning.plan import Step


class LegalityGate(Gate):
    name = "legality"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        if legal(facts.snapshot, step):
            return None
        return "the rules or the room on the target no longer allow it"
