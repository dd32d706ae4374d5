"""How far a plan has come, and what of it still fits a cluster that has changed."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import host_name
from ovirt_placement.planning.plan import Plan
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.rules.elements.placement import World
from ovirt_placement.store.enforcer.intents import Intent, IntentState


class Projection(NamedTuple):
    """The cluster as it will be once what is under way has ended: what plans are made for meanwhile."""

    snapshot: Snapshot
    #: VMs that are on their way, and are to be left alone until they are there, with that as the reason.
    moving: Mapping[str, str]


def projected(snapshot: Snapshot, open_intents: Iterable[Intent]) -> Projection:
    """Let every VM be where it is going, as far as that is known; its room on the source is not free yet.

    A VM that is only expected somewhere stays where it is shown, and is left alone, too.
    """
    ours = {intent.vm: intent.target for intent in open_intents}
    going, reasons = {}, {}
    for vm in snapshot.vms:
        *_, target = ("", *snapshot.pending_hosts.get(vm.id, ()))
        target = ours.get(vm.id) or target
        if vm.host in (None, target) or target not in snapshot.host_by_id:
            continue
        if vm.id in snapshot.unconfirmed and vm.id not in ours:
            reasons[vm.id] = f"it is expected on {host_name(target, snapshot)}, not confirmed"
        else:
            going[vm.id] = target
            reasons[vm.id] = f"it is on its way to {host_name(target, snapshot)}"
    if not going:
        return Projection(snapshot, reasons)
    return Projection(World(snapshot).arrived(going, source_freed=False).snapshot, reasons)


def fitting_steps(
    plan: Plan, ahead: Set[int], given_up: Collection[int], projection: Snapshot, frozen: Set[str]
) -> frozenset[int]:
    """Those of the steps `ahead`, by their places, that start where VMs are and repair what they say.

    Without one that does not, those fit neither that wait for it, that only make room for it, or that repair
    a group together with it. If what is left would violate a satisfied rule, and that the whole plan was not
    to break, nothing fits.
    """
    kept = frozenset(ahead)
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
        if left == kept:
            allowed = remains_violated | violated_groups(projection, plan.cluster)
            return kept if kept == ahead or violated <= allowed else frozenset()
        kept = left


def violated_groups(snapshot: Snapshot, cluster: str) -> frozenset[str]:
    """The groups of a cluster that are violated; none if it is gone."""
    if cluster not in snapshot.cluster_by_id:
        return frozenset()
    return frozenset(group for found in find_violations(snapshot, cluster) for group in found.groups)


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
class UnderWay:
    """A plan that is being carried out. After a restart another one is made in its place."""

    plan: Plan
    #: Steps by their places in the plan, from 0.
    done: set[int] = field(default_factory=set)
    #: Whether a user had it applied.
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
            if place in self.ahead and self.done.issuperset(step.after):
                yield place

    @property
    def begun(self) -> bool:
        """Whether any step was taken."""
        return bool(self.done or self.running or self.given_up)

    @property
    def over(self) -> bool:
        """Whether nothing is left to be done or seen."""
        return not (self.ahead or self.running or self.unproven)

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
        ahead = frozenset(self.ahead)
        kept = fitting_steps(self.plan, ahead, self.given_up, projection, frozen)
        self.given_up |= ahead - kept
        return ahead - kept

    @property
    def vms(self) -> frozenset[str]:
        """All VMs that the plan moves."""
        return frozenset(vm for step in self.plan.steps for vm in step.vms)

    @property
    def ahead(self) -> set[int]:
        """The places of the steps that have not begun and are not given up."""
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
            for earlier in (*self.ahead, *self.running)
        )
