"""Holds a VM that was migrated a moment ago: its guest and its peers have only just come to rest.

A plan that parks a VM, to free the way for others, may take it on at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

from ovirt_enforcer.gates.gate import Facts, VmGate
from ovirt_enforcer.gates.history import by_vm, refused
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model.names import host_name
from ovirt_placement.planning.plan import Plan
from ovirt_placement.store.intents import Intent, IntentState


class JustMovedGate(VmGate):
    name = "just_moved"

    def frozen(self, facts: Facts) -> Mapping[str, str]:
        seconds = facts.settings.cooldown_after_success_seconds
        return {
            done.vm: f"it came to {host_name(done.target, facts.snapshot)} less than {seconds:.0f} s ago"
            for done in _just_moved(facts)
            if not _goes_on(done, facts.plan)
        }

    def seconds_left(self, facts: Facts, cluster: str) -> float:
        seconds = facts.settings.cooldown_after_success_seconds
        ends = (seconds - done.age_seconds for done in _just_moved(facts) if done.cluster == cluster)
        return min(ends, default=inf)

    def reach_seconds(self, settings: EnforcerSettings) -> float:
        return settings.cooldown_after_success_seconds


def _just_moved(facts: Facts) -> Iterator[Intent]:
    """The migrations that VMs have come to rest by only just."""
    begun = by_vm(intent for intent in facts.history if not refused(intent))
    for *_, last in begun.values():
        if (
            last.state is IntentState.DONE
            and last.age_seconds < facts.settings.cooldown_after_success_seconds
        ):
            yield last


def _goes_on(done: Intent, plan: Plan | None) -> bool:
    """Whether the plan that moved a VM moves it on from there."""
    of_vm = [
        (step.sources[step.vms.index(done.vm)], step.target)
        for step in (plan.steps if plan is not None else ())
        if done.vm in step.vms
    ]
    return (done.source, done.target) in of_vm and any(source == done.target for source, _ in of_vm)
