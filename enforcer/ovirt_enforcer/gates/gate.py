"""What a gate is: it answers None, or a sentence that says why a migration must not be made now."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from ovirt_enforcer.planning.plan import Step
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.store.intents import Intent


@dataclass(frozen=True, slots=True)
class Facts:
    """All that gates judge by: a gate reads no clock, no store and no engine of its own."""

    settings: EnforcerSettings
    snapshot: Snapshot
    #: What was asked of the engine, the oldest first, as far back as the gates wish.
    history: Sequence[Intent]
    #: Migrations whose end is not known yet.
    open_intents: Sequence[Intent]


class Gate(ABC):
    """One reason to hold back."""

    #: A short word for it, the same whatever the sentence says.
    name: ClassVar[str]

    @abstractmethod
    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        """Why the step must not be taken in this cluster now; None if this gate lets it pass."""

    def held(self, facts: Facts) -> Mapping[str, str]:
        """VMs that no plan shall move for now, with the reason, by VM id."""
        return {}

    def reach_seconds(self, settings: EnforcerSettings) -> float:
        """How far back the history must go for this gate."""
        return 0.0


class VmGate(Gate):
    """A gate that holds single VMs: the planner leaves them alone, and plans for the others."""

    @abstractmethod
    def held(self, facts: Facts) -> Mapping[str, str]: ...

    @final
    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        held = self.held(facts)
        return next((held[vm] for vm in step.vms if vm in held), None)
