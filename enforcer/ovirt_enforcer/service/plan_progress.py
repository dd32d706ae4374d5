"""How far a plan has come, and what of it still fits a cluster that has changed."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from ovirt_enforcer.gates.gate import HOUR_SECONDS
from ovirt_enforcer.maintenance.decision import Returning
from ovirt_enforcer.planners import PlanQuestion
from ovirt_enforcer.service.reading import Parts, Reading
from ovirt_placement.answers.plans import kept_reasons
from ovirt_placement.answers.plans.text import NoPlan, plan_of
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.maintenance.site import Leaving
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.requests import Home
from ovirt_placement.rules.catalogue import violated_groups
from ovirt_placement.rules.elements.placement import World
from ovirt_placement.store.enforcer.history import PlanRecord
from ovirt_placement.store.enforcer.intents import Cause, Intent, IntentState
from ovirt_placement.store.orders import Approval


def fitting_steps(
    plan: Plan,
    ahead: Set[int],
    given_up: Collection[int],
    projection: Snapshot,
    frozen: Set[str],
    settled: Set[str] = frozenset(),
) -> frozenset[int]:
    """Those of the steps `ahead`, by their places, that start where VMs are and repair what they say.

    Without one that does not, those fit neither that wait for it, that only make room for it, or that repair
    a group together with it. If what is left would violate a satisfied rule, and that the whole plan was not
    to break, nothing fits. `settled` are groups that others have repaired.
    """
    kept = frozenset(at for at in ahead if not (groups := plan.steps[at].groups) or not settled >= {*groups})
    # A step may repair what a later one violates again, for a rule that counts more.
    remains_violated = {group for rule in plan.remaining for group in rule.groups}
    while True:
        end, movable = _state_after(plan, kept, projection, frozen)
        violated = violated_groups(end, plan.cluster)
        lost = {group for place in ahead - kept for group in plan.steps[place].repairs}
        without = {*given_up, *(ahead - kept)}
        left = frozenset(
            place
            for place in movable
            if without.isdisjoint(plan.steps[place].after)
            and (violated - remains_violated).isdisjoint(plan.steps[place].repairs)
            and not _is_useless(plan, place, without, lost)
        )
        if left == kept == ahead:
            return kept
        if left == kept:
            allowed = remains_violated | violated_groups(projection, plan.cluster)
            return kept if violated <= allowed else frozenset()
        kept = left


def _state_after(
    plan: Plan, kept: Set[int], projection: Snapshot, frozen: Set[str]
) -> tuple[Snapshot, frozenset[int]]:
    """The cluster after these steps, and those of them that start where their VMs are."""
    where = {vm.id: vm.host for vm in projection.vms}
    moved: dict[str, str] = {}
    movable = set()
    for place in sorted(kept):
        step = plan.steps[place]
        starts = zip(step.vms, step.sources, strict=True)
        if all(vm not in frozen and where.get(vm) == source for vm, source in starts):
            movable.add(place)
            moved.update(dict.fromkeys(step.vms, step.target))
            where |= moved
    return World(projection).arrived(moved, source_freed=False).snapshot, frozenset(movable)


def _is_useless(plan: Plan, place: int, without: Collection[int], lost: Collection[str]) -> bool:
    """Whether all is left out that a step helps: groups repaired with others, or steps that need room."""
    step = plan.steps[place]
    if step.repairs or step.reserves:
        return False
    if step.groups:
        return all(group in lost for group in step.groups)
    helped = [later for later, other in enumerate(plan.steps) if place in other.after]
    return bool(helped) and all(later in without for later in helped)


@dataclass(slots=True)
class PlanProgress:
    """A plan that is being carried out. After a restart another one is made in its place."""

    plan: Plan
    #: Groups that were violated when it was made.
    violated: frozenset[str] = frozenset()
    #: Steps by their places in the plan, from 0.
    done: set[int] = field(default_factory=set)
    #: The word of a user who had it applied.
    order: Approval | None = None
    running: dict[int, set[str]] = field(default_factory=dict)
    given_up: set[int] = field(default_factory=set)
    #: Done steps of which it is not known yet whether what they repair is satisfied.
    unproven: set[int] = field(default_factory=set)

    @property
    def vms(self) -> frozenset[str]:
        return frozenset(vm for step in self.plan.steps for vm in step.vms)

    @property
    def ahead(self) -> set[int]:
        """The places of the steps that have not begun and are not given up."""
        return set(range(len(self.plan.steps))) - self.done - self.running.keys() - self.given_up

    @property
    def begun(self) -> bool:
        return bool(self.done or self.running or self.given_up)

    @property
    def over(self) -> bool:
        return not (self.ahead or self.running or self.unproven)

    def ready(self) -> Iterator[int]:
        """The steps that may begin now, the most urgent first."""
        for place, step in enumerate(self.plan.steps):
            if place in self.ahead and self.done.issuperset(step.after):
                yield place

    def begin(self, place: int) -> None:
        self.running[place] = {*self.plan.steps[place].vms}

    def end(self, intent: Intent) -> None:
        """Take note of an ended migration; one of another plan is none of ours."""
        if intent.plan != self.plan.id or intent.step is None or intent.step - 1 not in self.running:
            return
        place = intent.step - 1
        self.running[place].discard(intent.vm)
        if intent.state is not IntentState.DONE:
            self._give_up(place)
        if not self.running[place]:
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
        violated, steps = violated_groups(snapshot, self.plan.cluster), self.plan.steps
        to_come = (*self.ahead, *self.running)
        ended = [
            place
            for place in self.unproven
            if not any(
                earlier < place and not set(steps[place].repairs).isdisjoint(steps[earlier].groups)
                for earlier in to_come
            )
        ]
        self.unproven.difference_update(ended)
        return tuple(
            dict.fromkeys(group for place in ended for group in steps[place].repairs if group in violated)
        )

    def leave_out(self, projection: Snapshot, frozen: Set[str]) -> frozenset[int]:
        """Give up, and return, the steps ahead that do not fit the cluster, and what hangs on them."""
        plan, ahead = self.plan, frozenset(self.ahead)
        begun = {group for at, step in enumerate(plan.steps) if at not in ahead for group in step.groups}
        settled = self.violated - begun - violated_groups(projection, plan.cluster)
        left_out = ahead - fitting_steps(plan, ahead, self.given_up, projection, frozen, settled)
        self.given_up |= left_out
        return left_out

    def _give_up(self, place: int) -> None:
        self.given_up.add(place)
        for later, step in enumerate(self.plan.steps):
            if not self.given_up.isdisjoint(step.after) and later not in self.done:
                self.given_up.add(later)


def applied_plan(parts: Parts, cluster: str) -> PlanProgress | None:
    """What `ovirt-enforcer apply` has ordered for a cluster, as far as that has come. Raises `StoreAway`."""
    for approval in parts.stores.approvals.approvals():
        lasts = approval.age_seconds < parts.settings.approval_hours * HOUR_SECONDS
        if approval.cluster == cluster and lasts:
            for record in parts.stores.history.plans_named(approval.plan):
                if record.id == approval.plan and record.epoch is None:
                    return _as_far_as_done(record, approval)
    return None


def _as_far_as_done(record: PlanRecord, order: Approval) -> PlanProgress | None:
    """None of a plan of another release, of one that is done, and of one whose rest leads elsewhere."""
    try:
        plan = plan_of(record.document)
    except NoPlan:
        return None
    asked = [one for one in record.migrations if one.cause is not Cause.NEVER_ASKED]
    since = [one for one in asked if one.created >= order.set_at]
    running: dict[int, set[str]] = {}
    for migration in since:
        if migration.step and migration.state is not IntentState.DONE:
            running.setdefault(migration.step - 1, set()).add(migration.vm)
    done = {one.step - 1 for one in since if one.step and one.step - 1 not in running}
    if any(one.state is IntentState.FAILED for one in since) or len(done) >= len(plan.steps):
        return None
    return PlanProgress(plan, done=done, order=order, running=running)


class AskedPlan(NamedTuple):
    """What a plan is made of, and the VMs that a maintenance run was bringing back then."""

    snapshot: Snapshot
    question: PlanQuestion
    returning: Returning | None


class LastPlan(NamedTuple):
    """What the last plan of a cluster leaves undone; nothing is known before the first."""

    waiting: frozenset[str] = frozenset()
    #: VMs that it could not take off a host that is to be empty, with the reasons.
    staying: Mapping[str, str] = {}
    #: By the run that brings VMs back, once nothing is left to be done, those that stay.
    at_home: Mapping[str, Mapping[str, str]] = {}


def last_plan(reading: Reading, plan: Plan, asked: AskedPlan) -> LastPlan:
    lost = plan.reservation.lost if plan.reservation is not None else ()
    unrepaired = (*(one.vms for one in plan.remaining), *(one.vms for one in lost))
    waiting = frozenset(vm for vms in unrepaired for vm in vms)
    staying, returning = _staying(plan, asked.snapshot, Leaving.family), asked.returning
    if returning is None or plan.steps or reading.moves_in(plan.cluster):
        return LastPlan(waiting, staying)
    held = {one.vm for one in returning.moved if one.vm in asked.question.holding.frozen}.difference(
        returning.given_up
    )
    if held and math.isfinite(reading.seconds_left(plan.cluster)):
        return LastPlan(waiting, staying)  # time alone lets them go
    return LastPlan(waiting, staying, {returning.run: _staying(plan, asked.snapshot, Home.family)})


def _staying(plan: Plan, snapshot: Snapshot, family: str) -> dict[str, str]:
    return {
        vm: "; ".join(kept_reasons(vm, remaining.obstacles, snapshot))
        for remaining in plan.remaining
        if remaining.family == family
        for vm in remaining.vms
    }
