"""What a gate is: it answers None, or a sentence that says why something must not be done now."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from math import inf
from typing import ClassVar, final

from ovirt_enforcer.gates.history import asked
from ovirt_enforcer.gates.host_action import HostAction
from ovirt_enforcer.gates.movement import Movement, movements
from ovirt_enforcer.gates.remembered import Remembered
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan, Step
from ovirt_placement.store.intents import Intent


@dataclass(frozen=True)
class Facts:
    """All that gates judge by: a gate reads no clock, no store and no engine of its own."""

    settings: EnforcerSettings
    snapshot: Snapshot
    remembered: Remembered
    #: Migrations whose end is not known yet; those just admitted stand last.
    open_intents: Sequence[Intent]
    #: With a time zone.
    now: datetime
    #: The whole plan that the step is of, or that is under way; None where there is none.
    plan: Plan | None = None

    @cached_property
    def history(self) -> tuple[Intent, ...]:
        """What the engine was asked for and has ended, the oldest first, as far back as the gates wish."""
        return asked(self.remembered.history)

    @cached_property
    def begun(self) -> tuple[Intent, ...]:
        """All that the engine was asked for: what has ended, then what is under way."""
        return (*self.history, *self.open_intents)

    def begun_in(self, cluster: str) -> Iterator[Intent]:
        """The same of one cluster."""
        return (intent for intent in self.begun if intent.cluster == cluster)

    @cached_property
    def movements(self) -> tuple[Movement, ...]:
        """All that is on its way, ours and others'."""
        return movements(self.snapshot, self.open_intents)


class Gate(ABC):
    """One reason to hold back."""

    #: A short word for it, the same whatever the sentence says.
    name: ClassVar[str]

    @abstractmethod
    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        """Why the step must not be taken in this cluster now; None if this gate lets it pass."""

    def why_action_closed(self, facts: Facts, cluster: str, action: HostAction) -> str | None:
        """Why an action on a host must not be begun in this cluster now; None if this gate lets it pass."""
        return None

    def frozen(self, facts: Facts) -> Mapping[str, str]:
        """VMs that no plan shall move for now, with the reason, by VM id."""
        return {}

    def frozen_hosts(self, facts: Facts) -> Mapping[str, str]:
        """Hosts that no plan shall move anything to for now, with the reason, by host id."""
        return {}

    def held_groups(self, facts: Facts) -> Mapping[str, str]:
        """Affinity groups and legacy labels that no plan shall repair for now, with the reason, by id."""
        return {}

    def seconds_left(self, facts: Facts, cluster: str) -> float:
        """How long until time alone opens it for something in a cluster; infinite if time does not."""
        return inf

    def reach_seconds(self, settings: EnforcerSettings) -> float:
        """How far back the history must go for this gate."""
        return 0.0


class VmGate(Gate):
    """A gate that holds single VMs: the planner leaves them alone, and plans for the others."""

    @abstractmethod
    def frozen(self, facts: Facts) -> Mapping[str, str]: ...

    @final
    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        frozen = self.frozen(facts)
        return next((frozen[vm] for vm in step.vms if vm in frozen), None)
