"""The one place that admits a migration: whatever asks for one, every gate of the catalogue must be open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from typing import Final

from ovirt_enforcer.gates.catalogue import GATES
from ovirt_enforcer.gates.gate import Facts
from ovirt_enforcer.gates.history import asked
from ovirt_enforcer.planning.plan import Plan, Step
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.store.intents import Intent

#: Without this no `Admitted` can be made, and it does not leave this file.
_KEY: Final = object()


class Closed(Exception):
    """A step must not be taken now; the text says why, and `gate` is the name of the gate that is closed."""

    def __init__(self, gate: str, reason: str) -> None:
        super().__init__(reason)
        self.gate = gate


@dataclass(frozen=True, slots=True)
class Admitted:
    """A step that may be taken now. Made by `Gates.admit` alone; without one there is no migration."""

    cluster: str
    step: Step
    key: InitVar[object]

    def __post_init__(self, key: object) -> None:
        if key is not _KEY:
            raise TypeError("a step is admitted by Gates.admit, and by nothing else")


class Gates:
    """All gates, with what the settings say and the store remembers."""

    def __init__(self, settings: EnforcerSettings, history: Sequence[Intent], open_intents: Sequence[Intent]):
        """`history` reaches as far back as `reach_seconds` says."""
        self._settings = settings
        self._history = asked(history)
        self._open = open_intents

    @staticmethod
    def reach_seconds(settings: EnforcerSettings) -> float:
        """How far back the history must go for every gate."""
        return max(gate.reach_seconds(settings) for gate in GATES)

    def held(self, snapshot: Snapshot) -> dict[str, str]:
        """VMs that are to be left alone for now, with the reason, by VM id."""
        facts = self._facts(snapshot)
        reasons: dict[str, str] = {}
        for gate in GATES:
            reasons = {**gate.held(facts), **reasons}  # where two gates hold a VM, the first one says why
        return reasons

    def admit(self, snapshot: Snapshot, plan: Plan) -> Admitted:
        """Let the first step of a plan pass; `snapshot` must have been read for this decision.

        Raises `Closed` with the reason if it may not.
        """
        facts, step = self._facts(snapshot), plan.steps[0]
        for gate in GATES:
            reason = gate.why_closed(facts, plan.cluster, step)
            if reason is not None:
                raise Closed(gate.name, reason)
        return Admitted(plan.cluster, step, _KEY)

    def _facts(self, snapshot: Snapshot) -> Facts:
        return Facts(self._settings, snapshot, self._history, self._open)
