"""The one place that every migration passes: whatever asks for one, only a gate can admit it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ovirt_enforcer.planning.plan import Plan, Step
from ovirt_enforcer.planning.planner import legal
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.answers.sentences import host_name, vm_name
from ovirt_placement.model import Snapshot
from ovirt_placement.store.intents import Intent, IntentState

HOUR_SECONDS = 3600.0
#: Failures in a row double the cooldown so often and no more.
_MOST_DOUBLINGS: Final = 4
#: The error of an intent that came to nothing without the engine's doing: no reason for a cooldown.
NEVER_ASKED = "never reached the engine"


class Closed(Exception):
    """A step must not be taken now; the text says why."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A step that may be taken now. Made by `Gates.admit` alone; without one there is no migration."""

    cluster: str
    step: Step


class Gates:
    """Mode, a busy cluster, cooldowns and limits, judged by the settings and by what the store remembers."""

    def __init__(self, settings: EnforcerSettings, history: Sequence[Intent], open_intents: Sequence[Intent]):
        """`history` reaches as far back as `reach_seconds` says."""
        self._settings = settings
        self._history = [intent for intent in history if intent.error != NEVER_ASKED]
        self._open = open_intents

    @staticmethod
    def reach_seconds(settings: EnforcerSettings) -> float:
        """How far back the history must go, for failures with the longest cooldown between them to count."""
        longest = settings.cooldown_seconds * 2.0**_MOST_DOUBLINGS
        return max(HOUR_SECONDS, longest * (_MOST_DOUBLINGS + 4))

    def held(self, snapshot: Snapshot) -> dict[str, str]:
        """VMs that are to be left alone for now, with the reason, by VM id."""
        by_vm = defaultdict(list)
        for intent in self._history:
            by_vm[intent.vm].append(intent)
        reasons = {vm: self._why_held(snapshot, intents) for vm, intents in by_vm.items()}
        return {vm: reason for vm, reason in reasons.items() if reason is not None}

    def admit(self, snapshot: Snapshot, plan: Plan) -> Admitted:
        """Let the first step of a plan pass; `snapshot` must have been read for this decision.

        Raises `Closed` with the reason if it may not.
        """
        step = plan.steps[0]
        reason = (
            self._why_closed(snapshot, plan.cluster)
            or next((self.held(snapshot)[vm] for vm in step.vms if vm in self.held(snapshot)), None)
            or (None if legal(snapshot, step) else "the rules or the room on the target no longer allow it")
        )
        if reason is not None:
            raise Closed(reason)
        return Admitted(plan.cluster, step)

    def _why_closed(self, snapshot: Snapshot, cluster: str) -> str | None:
        if self._settings.mode is not Mode.ENFORCE:
            return 'dry run: set mode = "enforce" under [enforcer] to let it'
        if snapshot.cluster_by_id[cluster].upgrade_mode:
            return "the cluster is being upgraded"
        if busy := why_busy(snapshot, cluster, self._open):
            return busy
        lately = sum(i.cluster == cluster and i.age_seconds < HOUR_SECONDS for i in self._history)
        if lately >= self._settings.cluster_migrations_per_hour:
            return f"{lately} migrations in the last hour, as many as cluster_migrations_per_hour allows"
        return None

    def _why_held(self, snapshot: Snapshot, intents: Sequence[Intent]) -> str | None:
        last = intents[-1]
        in_a_row = 0
        while in_a_row < len(intents) and intents[-1 - in_a_row].state is IntentState.FAILED:
            in_a_row += 1
        cooldown = self._settings.cooldown_seconds * 2.0 ** min(in_a_row - 1, _MOST_DOUBLINGS)
        if in_a_row and last.age_seconds < cooldown:
            target = host_name(last.target, snapshot)
            return f"its migration to {target} failed ({last.error}); the cooldown is {cooldown:.0f} s"
        lately = sum(intent.age_seconds < HOUR_SECONDS for intent in intents)
        if lately >= self._settings.vm_migrations_per_hour:
            return f"migrated {lately} times in the last hour, as often as vm_migrations_per_hour allows"
        return None


def why_busy(snapshot: Snapshot, cluster: str, open_intents: Sequence[Intent]) -> str | None:
    """What moves in the cluster already: ours, the engine's own enforcement, its balancing, or a person's.

    A plan is made for VMs that stand still; two enforcers at once would undo each other's work.
    """
    for intent in open_intents:
        if intent.cluster == cluster:
            return f"the migration of {vm_name(intent.vm, snapshot)} has not ended yet"
    for vm in snapshot.vms:
        if vm.cluster == cluster and (vm.status == "migrating" or vm.id in snapshot.pending_hosts):
            return f"{vm.name} is on its way already"
    return None
