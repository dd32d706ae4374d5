"""Holds a VM whose migration failed, longer with each failure in a row.

A refusal is none: the engine let nothing begin, and another target may do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from math import inf
from typing import Final

from ovirt_enforcer.gates.gate import Facts, VmGate
from ovirt_enforcer.gates.history import by_vm, failed, refused
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model.names import host_name
from ovirt_placement.store.intents import Intent
from ovirt_service.back_off import BackOff

#: The longest cooldown is this many times the first.
_LONGEST: Final = 16
#: This many of the longest cooldowns are looked back upon: a VM that keeps failing must not begin again.
_LONGEST_REMEMBERED: Final = 8


class CooldownGate(VmGate):
    name = "cooldown"

    def frozen(self, facts: Facts) -> Mapping[str, str]:
        return {last.vm: _why_held(facts, last, cooldown) for last, cooldown in _cooling(facts)}

    def seconds_left(self, facts: Facts, cluster: str) -> float:
        ends = (pause - last.age_seconds for last, pause in _cooling(facts) if last.cluster == cluster)
        return min(ends, default=inf)

    def reach_seconds(self, settings: EnforcerSettings) -> float:
        return settings.cooldown_seconds * _LONGEST * _LONGEST_REMEMBERED


def _cooling(facts: Facts) -> Iterator[tuple[Intent, float]]:
    """The last migration of each VM that is held, with how long it is."""
    first = facts.settings.cooldown_seconds
    pauses = BackOff(first, first * _LONGEST)
    for intents in by_vm(intent for intent in facts.history if not refused(intent)).values():
        cooldown = pauses.pause_after(sum(1 for _ in takewhile(failed, reversed(intents))))
        if intents[-1].age_seconds < cooldown:
            yield intents[-1], cooldown


def _why_held(facts: Facts, last: Intent, cooldown: float) -> str:
    target = host_name(last.target, facts.snapshot)
    return f"its migration to {target} failed ({last.reason}); the cooldown is {cooldown:.0f} s"
