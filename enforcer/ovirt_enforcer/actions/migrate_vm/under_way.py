"""How far a plan has come: which of its steps are done, which run, and which may begin now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field

from ovirt_enforcer.actions.migrate_vm.fitting_steps import fitting_steps, violated_groups
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan
from ovirt_placement.store.intents import Intent, IntentState


@dataclass(slots=True)
class UnderWay:
    """A plan that is being carried out. After a restart another one is made in its place."""

    plan: Plan
    #: Steps by their places in the plan, from 0.
    done: set[int] = field(default_factory=set)
    #: Whether somebody had it applied.
    ordered: bool = False
    #: With the VMs that have not arrived yet.
    running: dict[int, set[str]] = field(default_factory=dict)
    #: Steps that failed, and all that wait for them.
    given_up: set[int] = field(default_factory=set)
    #: Done steps of which it is not known yet whether what they repair is satisfied.
    unproven: set[int] = field(default_factory=set)

    def ready(self) -> Iterator[int]:
        """The steps that may begin now, the most urgent first."""
        for place, step in enumerate(self.plan.steps):
            if place in self._ahead and self.done.issuperset(step.after):
                yield place

    @property
    def begun(self) -> bool:
        """Whether any step was taken."""
        return bool(self.done or self.running or self.given_up)

    @property
    def over(self) -> bool:
        """Whether nothing is left to be done or seen."""
        return not (self._ahead or self.running or self.unproven)

    def begin(self, place: int) -> None:
        self.running[place] = {*self.plan.steps[place].vms}

    def end(self, intent: Intent) -> None:
        """Take note of an ended migration; one of another plan is none of ours."""
        if intent.plan != self.plan.id or intent.step is None:
            return
        place = intent.step - 1
        vms = self.running.get(place)
        if vms is None:
            return
        vms.discard(intent.vm)
        if intent.state is not IntentState.DONE:
            self._give_up(place)
        if not vms:
            del self.running[place]
            if place not in self.given_up:
                self.done.add(place)
                self.unproven.add(place)

    def lose_all_but(self, open_intents: Iterable[Intent]) -> bool:
        """Give up steps that run without an open migration; whether there were any."""
        known = {intent.step for intent in open_intents if intent.plan == self.plan.id}
        lost = [place for place in self.running if place + 1 not in known]
        for place in lost:
            del self.running[place]
            self._give_up(place)
        return bool(lost)

    def prove(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Which groups are violated still that done steps were to repair, as far as that is known now.

        A step may repair a group together with steps before it: then it is reported once those are done.
        """
        violated = violated_groups(snapshot, self.plan.cluster)
        ended = [place for place in self.unproven if self._alone(place)]
        self.unproven.difference_update(ended)
        wanted = [group for place in ended for group in self.plan.steps[place].repairs]
        return tuple(dict.fromkeys(group for group in wanted if group in violated))

    def leave_out(self, projection: Snapshot, frozen: Set[str]) -> frozenset[int]:
        """Give up the steps ahead that do not fit the cluster any more, and what hangs on them; return them.

        The others start where VMs are, and repair what they say. Each is checked again when it is taken.
        """
        ahead = frozenset(self._ahead)
        kept = fitting_steps(self.plan, ahead, self.given_up, projection, frozen)
        self.given_up |= ahead - kept
        return ahead - kept

    @property
    def vms(self) -> frozenset[str]:
        """All VMs that the plan moves."""
        return frozenset(vm for step in self.plan.steps for vm in step.vms)

    @property
    def _ahead(self) -> set[int]:
        return set(range(len(self.plan.steps))) - self.done - self.running.keys() - self.given_up

    def _give_up(self, place: int) -> None:
        """Leave out a step, and all that wait for it."""
        self.given_up.add(place)
        for later, step in enumerate(self.plan.steps):
            if not self.given_up.isdisjoint(step.after) and later not in self.done:
                self.given_up.add(later)

    def _alone(self, place: int) -> bool:
        """Whether no earlier step with the same groups is yet to be done."""
        groups = {*self.plan.steps[place].repairs}
        return not any(
            earlier < place and not groups.isdisjoint(self.plan.steps[earlier].groups)
            for earlier in (*self._ahead, *self.running)
        )
