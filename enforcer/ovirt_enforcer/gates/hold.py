"""Closed until a rule was seen violated in some cycles: much repairs itself, or is still being changed."""

from __future__ import annotations

from collections.abc import Mapping

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.purpose import why_for_nothing
from ovirt_placement.model.names import group_name
from ovirt_placement.planning.plan import Step
from ovirt_placement.rules.violations import Violation


class HoldGate(Gate):
    name = "hold"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        if facts.settings.hold_cycles == 1:
            return None
        cycles = _cycles_of_groups(facts.remembered.violated_cycles)
        return why_for_nothing(step, facts.plan, lambda group: _why_held(facts, group, cycles.get(group, 0)))

    def held_groups(self, facts: Facts) -> Mapping[str, str]:
        cycles = _cycles_of_groups(facts.remembered.violated_cycles)
        return {
            group: reason
            for group, count in cycles.items()
            if (reason := _why_held(facts, group, count)) is not None
        }


def rule_key(violation: Violation) -> str:
    """What identifies a violated rule from one cycle to the next: its groups, and which half it is."""
    hardness = "hard" if violation.hard else "soft"
    return " ".join((violation.constraint.family, hardness, *sorted(violation.groups)))


def _cycles_of_groups(violated: Mapping[str, int]) -> Mapping[str, int]:
    """The cycles of the rule of each group that has been violated longest."""
    longest: dict[str, int] = {}
    for key, cycles in violated.items():
        for group in key.split(" ")[2:]:
            longest[group] = max(cycles, longest.get(group, 0))
    return longest


def _why_held(facts: Facts, group: str, cycles: int) -> str | None:
    wanted = facts.settings.hold_cycles
    if cycles >= wanted:
        return None
    return f"{group_name(group, facts.snapshot)} was violated in {cycles} of {wanted} cycles (hold_cycles)"
