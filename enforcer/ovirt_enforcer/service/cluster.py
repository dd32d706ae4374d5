"""The work for one cluster: have a plan made, hold it against each reading, take its steps, say so once."""

from collections.abc import Collection, Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from ovirt_enforcer.actions.executor import Stale, Task
from ovirt_enforcer.gates.admission import Admitted, Closed
from ovirt_enforcer.gates.limits import LEGALITY
from ovirt_enforcer.gates.people import APPROVAL
from ovirt_enforcer.log import LogText, RetryState, report
from ovirt_enforcer.planners import Call
from ovirt_enforcer.service.plan_progress import AskedPlan, LastPlan, PlanProgress, applied_plan, last_plan
from ovirt_enforcer.service.reading import Parts, Reading
from ovirt_placement.answers.plans import PlannedStep, misfit_text, plan_record
from ovirt_placement.answers.plans.text import dropped_text, plan_lines, step_text
from ovirt_placement.engine.connection.dialogues import Outcome
from ovirt_placement.model.names import counted, group_names, vm_name
from ovirt_placement.model.record import with_names
from ovirt_placement.planning.maintenance.site import Leaving
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.problem.build_problem import legal
from ovirt_placement.planning.requests import Home
from ovirt_placement.planning.steps import misfit
from ovirt_placement.rules.catalogue import violated_groups
from ovirt_placement.rules.doubts import COUNTED_SECONDS, doubt, with_room_to_come
from ovirt_placement.rules.elements.placement import World
from ovirt_placement.store.enforcer.intents import Intent, IntentState
from ovirt_placement.store.orders import Paused
from ovirt_service.daemon import BackOff
from ovirt_service.repetition import Said

#: For this many times as long as a plan took, nothing that happens has another one made.
_REST: Final = 2.0
#: How soon to look again whether the engine has counted the memory of its VMs.
_COUNTED_SECONDS: Final = 5.0
_LATE: Final = "the engine still counts VMs there that have left the target"


class ClusterWork:
    """A cluster, with its plan and how far that has come. After a restart all of this is made again."""

    def __init__(self, cluster: str, parts: Parts) -> None:
        self.retry_state = RetryState(f"cluster {cluster}", due=parts.clock())
        self._cluster = cluster
        self._parts = parts
        self._progress: PlanProgress | None = None
        self._planning: Call[Plan] | None = None
        #: What the plan is made of that is being made, or that was made and not looked at yet.
        self._asked: AskedPlan | None = None
        self._made: Plan | None = None
        #: Whether another plan is needed now; or once planning has rested, since something happened.
        self._wanted, self._changed = True, False
        #: When planning began, and until when it is to rest.
        self._asked_at = self._rested_at = 0.0
        self._misfits = 0
        self._said = Said()
        #: Whether it was tried out if the first plan would lead to a loop.
        self._simulated = False
        self.last_plan = LastPlan()

    @property
    def vms(self) -> Collection[str]:
        return frozenset() if self._progress is None else self._progress.vms

    @property
    def planning(self) -> bool:
        return self._planning is not None

    def wake(self, at: float) -> None:
        """Something happened that can violate or repair a rule: look again then, and plan again.

        Planning takes no more than a third of the time, however much happens: in the rest steps are taken.
        """
        self._changed = True
        self._hurry(max(at, self._rested_at))

    def leave(self) -> None:
        """End its use: the cluster is gone, or another process leads it."""
        if self._planning is not None:
            self._planning.cancel()

    def answered(self, outcome: Outcome) -> None:
        """Take note of what a request or a look at a migration came to. Raises what was raised there."""
        try:
            self._record_ended(outcome.result())
        except (Stale, Paused) as why:
            self._put_off_steps(why)

    def compare(self, open_intents: Iterable[Intent]) -> None:
        """Take note of which migrations are open: any other step that runs was ended elsewhere."""
        if self._progress is not None and self._progress.lose_all_but(open_intents):
            self.wake(self._parts.clock())

    def collect(self) -> None:
        """Take the plan that is being made, if it is there, and look at once. Raises `CallFailed`."""
        self._collect()
        if self._made is not None:
            self._hurry(self._parts.clock())

    def reconcile(self, reading: Reading) -> None:
        """Do what can be done now. `reading` must have begun after all that was reported before."""
        self.retry_state.due = self._parts.clock() + self._parts.settings.interval_seconds
        if why := doubt(reading.snapshot, self._cluster):
            self._wanted = True
            self._hurry(self._parts.clock() + _COUNTED_SECONDS)
            report(LogText.RESTS, cluster=self.retry_state.name, why=why)
            return
        if self._warn_of_restless(reading):
            self._simulated, self._wanted = False, True
        new = self._accept(reading)
        if self._progress is not None:
            self._check(reading, self._progress)
        begun = self._progress is not None and self._progress.begun
        again = self._wanted or (self._changed and self._parts.clock() >= self._rested_at)
        if again or not (new or begun or self.planning):
            self._ask_for_plan(reading)
            self._accept(reading)
        # While another plan is made, nothing is done that it does not know of.
        if self._progress is not None and not self.planning:
            self._begin_steps(reading, self._progress)
        if self._changed and not self.planning:
            self._hurry(self._rested_at)
        self._hurry(self._parts.clock() + reading.seconds_left(self._cluster))

    def _record_ended(self, intents: Iterable[Intent]) -> None:
        for intent in intents:
            if intent.open:
                continue
            if self._progress is not None:
                self._progress.end(intent)
            self._wanted |= intent.state is not IntentState.DONE
            self._hurry(self._parts.clock())

    def _put_off_steps(self, why: Exception) -> None:
        report(LogText.NOT_NOW, cluster=self.retry_state.name, why=why)
        self.wake(self._parts.clock())

    def _collect(self) -> None:
        if self._planning is None or not self._planning.over():
            return
        planning, self._planning = self._planning, None
        try:
            self._made = planning.result()
        except Exception:
            self._wanted = True
            raise
        now = self._parts.clock()
        self._rested_at = now + _REST * (now - self._asked_at)

    def _ask_for_plan(self, reading: Reading) -> None:
        if self._planning is not None:
            return
        self._wanted = self._changed = False
        if self._obey(reading):
            return
        plan = None if self._progress is None else self._progress.plan
        # What was drawn stands until it begins: a user may be about to approve of it.
        waiting = self._progress is not None and not self._progress.begun
        seed = plan.seed if plan is not None and waiting else None
        question = reading.question(self._cluster, plan, simulate=not self._simulated, seed=seed)
        state = reading.projection.snapshot
        self._asked, self._asked_at = (
            AskedPlan(state, question, reading.returning_vms(self._cluster)),
            self._parts.clock(),
        )
        self._planning = self._parts.planners.start(state, question)
        self._collect()

    def _obey(self, reading: Reading) -> bool:
        """Take up a plan that a user had applied, unless the cluster has changed beneath it."""
        applied = applied_plan(self._parts, self._cluster)
        if applied is None or (order := applied.order) is None:
            return False
        plan, projection = applied.plan, reading.projection.snapshot
        ahead = tuple(plan.steps[place] for place in sorted(applied.ahead))
        why = misfit(projection, replace(plan, steps=ahead))
        if why is not None:
            self._parts.stores.approvals.revoke(order)
            text = misfit_text(why, projection)
            report(
                LogText.ORDER_VOID, cluster=self.retry_state.name, plan=plan.id, who=order.set_by, why=text
            )
            return False
        facts = {"cluster": self.retry_state.name, "plan": plan.id, "who": order.set_by}
        self.retry_state.say(LogText.ORDER_BEGINS, **facts)
        self._progress = applied
        return True

    def _accept(self, reading: Reading) -> bool:
        plan, asked = self._made, self._asked
        if plan is None or asked is None:
            return False
        self._made, self._asked = None, None
        self.last_plan = last_plan(reading, plan, asked)
        violated = violated_groups(asked.snapshot, self._cluster)
        self._progress = PlanProgress(plan, violated) if plan.steps else None
        if not plan.steps:
            if reading.moves_in(self._cluster):
                return True  # all will be well once what moves has arrived: it is said then
            # Without what a maintenance run asks for besides the rules.
            rules = (one for one in plan.remaining if one.family not in (Leaving.family, Home.family))
            if misfit(reading.projection.snapshot, replace(plan, remaining=tuple(rules))) is not None:
                self._wanted = True  # what was on its way then has not arrived
                return True
        self._simulated |= bool(plan.steps or plan.loop)
        if plan.loop:
            self.retry_state.warn_once(plan.loop)
        self._announce(reading, plan, asked)
        if self._parts.memory.offer(reading.gates, asked.snapshot, plan):
            report(LogText.PLAN_WAITS, cluster=self.retry_state.name, plan=plan.id)
            self._parts.recorder.waits(plan.id, self._cluster)
        # Each VM that violates a rule, and that others move away whenever we move it.
        violating = {vm for rule in plan.remaining for vm in rule.vms}
        for vm in sorted(violating & reading.backoff.undone.keys()):
            reason = reading.backoff.undone[vm].reason
            if self._said.is_news(("undone", vm), reason):
                self._warn_of_others(LogText.MOVED_BY_OTHERS, reading, vm, reason=reason)
        return True

    def _announce(self, reading: Reading, plan: Plan, asked: AskedPlan) -> None:
        record = plan_record(plan, asked.snapshot)
        for dropped in record.refused:
            self.retry_state.warn_once(dropped_text(dropped))
        # What a plan comes to, without what changes each time that others move a VM back and forth.
        unsettled = reading.backoff.spared(self._cluster).keys()
        remaining = {group for rule in plan.remaining for group in rule.groups} - unsettled
        gist = f"{plan.id if plan.steps else ''} {sorted(remaining)}" if unsettled else None
        self.retry_state.announce(plan_lines(record), gist)
        self._parts.recorder.planned(plan.id, self._cluster, msgspec.to_builtins(record), reading.epoch)

    def _warn_of_restless(self, reading: Reading) -> bool:
        restless = reading.backoff.restless_in(self._cluster)
        news = [vm for vm in sorted(restless) if self._said.is_news(("restless", vm), "restless")]
        for vm in news:
            found = restless[vm]
            often, reason = counted(len(found.hosts) - 1, "time"), found.reason(reading.snapshot)
            facts = {"often": often, "seconds": found.within_seconds}
            self._warn_of_others(LogText.RESTLESS, reading, vm, reason=reason, **facts)
        return bool(news)

    def _warn_of_others(self, text: LogText, reading: Reading, vm: str, **facts: object) -> None:
        ours = {one.request_id for one in reading.history if one.vm == vm}
        name, who = vm_name(vm, reading.snapshot), self._parts.moves.who_moved(vm, ours)
        report(text, cluster=self.retry_state.name, vm=name, who=who, **facts)

    def _check(self, reading: Reading, progress: PlanProgress) -> None:
        """Give up a plan that has led elsewhere, or leads nowhere any more, or is over."""
        violated = progress.prove(reading.snapshot)
        if violated:
            names = group_names(violated, reading.snapshot)
            self._drop(f"{names} is still violated after all steps of its repair")
            return
        # VMs that the plan must leave alone; what a user had applied waits for the gates instead.
        held = frozenset() if progress.order else reading.frozen(progress.plan).keys()
        left_out = progress.leave_out(reading.projection.snapshot, held)
        if left_out and progress.over:
            self._drop("the rest of the plan does not fit the cluster any more")
        elif progress.over:
            self._progress, self._wanted = None, True
        elif left_out:
            first = self._step_text(progress.plan, min(left_out), reading)
            more = f" and {len(left_out) - 1} more" if len(left_out) > 1 else ""
            report(LogText.STEPS_LEFT_OUT, cluster=self.retry_state.name, steps=first + more)

    def _drop(self, why: str) -> None:
        report(LogText.PLAN_DROPPED, cluster=self.retry_state.name, why=why)
        self._progress, self._wanted = None, True

    def _begin_steps(self, reading: Reading, progress: PlanProgress) -> None:
        snapshot, clock = reading.snapshot, self._parts.clock
        closed: dict[int, Closed] = {}
        for place in tuple(progress.ready()):
            if not self._parts.goes_on():
                return
            if clock() > reading.fresh_until:
                self._hurry(clock())
                return
            step = progress.plan.steps[place]
            try:
                admitted = reading.gates.admit(snapshot, self._cluster, step, progress.plan)
                begun = self._begin_step(reading, progress, place, admitted)
            except Closed as why:
                closed[place] = why
                continue
            except (Stale, Paused) as why:
                self._put_off_steps(why)
                return
            if begun:
                snapshot = World(snapshot).begun(step.vms, step.target).snapshot
        if closed and not progress.running:
            self._wait(reading, progress.plan, closed)

    def _begin_step(self, reading: Reading, progress: PlanProgress, place: int, admitted: Admitted) -> bool:
        plan, self._misfits = progress.plan, 0
        report(LogText.STEP_BEGINS, cluster=self.retry_state.name, step=self._step_text(plan, place, reading))
        progress.begin(place)
        task = Task(admitted, reading, plan=plan.id, number=place + 1)
        intents = self._parts.executor.begin(task)
        self._parts.moves.note_ours(*(intent.correlation_id for intent in intents))
        self._record_ended(intents)
        return any(intent.open for intent in intents)

    def _wait(self, reading: Reading, plan: Plan, closed: dict[int, Closed]) -> None:
        """Nothing runs and nothing may begin: say why, and plan again soon if the plan does not fit."""
        misfits = {at for at, why in closed.items() if why.gate == LEGALITY.name}
        done = (one for one in reading.history if one.state is IntentState.DONE)
        left = [(one.vm, one.source) for one in done if one.source and one.age_seconds < COUNTED_SECONDS]
        late = set[int]()
        if misfits and left:
            roomy = with_room_to_come(reading.snapshot, left)
            late = {at for at in misfits if legal(roomy, plan.steps[at])}
        closed |= dict.fromkeys(late, Closed(LEGALITY.name, _LATE))
        place, why = next(iter(closed.items()))
        step = self._step_text(plan, place, reading)
        self.retry_state.say(LogText.STEP_WAITS, cluster=self.retry_state.name, step=step, why=why)
        reasons = {place + 1: (why.gate, str(why)) for place, why in closed.items()}
        self._parts.recorder.held(plan.id, self._cluster, reasons)
        gates = {why.gate for why in closed.values()}
        if APPROVAL.name in gates:  # its approval may have expired
            self._parts.memory.offer(reading.gates, reading.snapshot, plan)
        if late:
            self._hurry(self._parts.clock() + _COUNTED_SECONDS)
        elif misfits:
            self._misfits += 1
            settings = self._parts.settings
            pause = BackOff(settings.poll_seconds, settings.interval_seconds).pause_after(self._misfits)
            self.wake(self._parts.clock() + pause)

    def _step_text(self, plan: Plan, place: int, reading: Reading) -> str:
        return step_text(with_names(PlannedStep, plan.steps[place], reading.snapshot))

    def _hurry(self, at: float) -> None:
        self.retry_state.due = min(self.retry_state.due, at)
