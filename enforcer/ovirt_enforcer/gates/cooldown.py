"""Holds a VM whose migration failed, longer with each failure in a row.

A refusal is none: the engine let nothing begin, and another target may do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

from ovirt_enforcer.gates.gate import Facts, VmGate
from ovirt_enforcer.gates.history import by_vm, failed, refused
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.names import host_name
from ovirt_placement.store.intents import Intent
from ovirt_service.back_off import BackOff

#: The longest cooldown is so many times the first.
_LONGEST: Final = 16
#: So many of the longest cooldowns are looked back upon: a VM that keeps failing must not begin anew.
_LONGEST_REMEMBERED: Final = 8


class CooldownGate(VmGate):
    name = "cooldown"

    def held(self, facts: Facts) -> Mapping[str, str]:
        begun = by_vm(intent for intent in facts.history if not refused(intent))
        reasons = {vm: _why_held(facts, intents) for vm, intents in begun.items()}
        return {vm: reason for vm, reason in reasons.items() if reason is not None}

    def reach_seconds(self, settings: EnforcerSettings) -> float:
        return settings.cooldown_seconds * _LONGEST * _LONGEST_REMEMBERED


def _why_held(facts: Facts, intents: Sequence[Intent]) -> str | None:
    last, first = intents[-1], facts.settings.cooldown_seconds
    in_a_row = sum(1 for _ in takewhile(failed, reversed(intents)))
    cooldown = BackOff(first, first * _LONGEST).pause_after(in_a_row)
    if last.age_seconds >= cooldown:
        return None
    target = host_name(last.target, facts.snapshot)
    return f"its migration to {target} failed ({last.error}); the cooldown is {cooldown:.0f} s"
