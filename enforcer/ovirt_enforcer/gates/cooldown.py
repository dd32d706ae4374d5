"""Holds a VM whose migration failed or was refused, longer with each failure in a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

from ovirt_enforcer.gates.gate import Facts, VmGate
from ovirt_enforcer.gates.history import by_vm
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.names import host_name
from ovirt_placement.store.intents import Intent, IntentState

#: Failures in a row double the cooldown so often and no more.
_MOST_DOUBLINGS: Final = 4
#: So many of the longest cooldowns are looked back upon: a VM that keeps failing must not begin anew.
_LONGEST_REMEMBERED: Final = 8


class CooldownGate(VmGate):
    name = "cooldown"

    def held(self, facts: Facts) -> Mapping[str, str]:
        reasons = {vm: _why_held(facts, intents) for vm, intents in by_vm(facts.history).items()}
        return {vm: reason for vm, reason in reasons.items() if reason is not None}

    def reach_seconds(self, settings: EnforcerSettings) -> float:
        return settings.cooldown_seconds * 2.0**_MOST_DOUBLINGS * _LONGEST_REMEMBERED


def _why_held(facts: Facts, intents: Sequence[Intent]) -> str | None:
    last = intents[-1]
    in_a_row = sum(1 for _ in takewhile(_has_failed, reversed(intents)))
    cooldown = facts.settings.cooldown_seconds * 2.0 ** min(in_a_row - 1, _MOST_DOUBLINGS)
    if not in_a_row or last.age_seconds >= cooldown:
        return None
    target = host_name(last.target, facts.snapshot)
    return f"its migration to {target} failed ({last.error}); the cooldown is {cooldown:.0f} s"


def _has_failed(intent: Intent) -> bool:
    return intent.state is IntentState.FAILED
