"""Carries out the maintenance runs that people request: one host of a cluster after another.

All that must survive stands in the store; what is true is in the engine. Each look decides what is next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any, Final

from ovirt_enforcer.actions.executor import Executor, Task
from ovirt_enforcer.gates.admission import Closed, Observation
from ovirt_enforcer.gates.gate import HostAction
from ovirt_enforcer.gates.people import rule_key
from ovirt_enforcer.log import LogText, NoticeKind, report
from ovirt_enforcer.maintenance.commands import CommandKind, Commands
from ovirt_enforcer.maintenance.decision import (
    Decision,
    End,
    Enter,
    Returning,
    Scene,
    StopCommand,
    Wait,
    brings_back,
    decide,
    not_back,
    returning_vms,
)
from ovirt_enforcer.memory import Stores
from ovirt_enforcer.notifications import Notifications
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.engine.actions import (
    finish_upgrade,
    read_host,
    read_upgrade,
    show_progress,
    start_upgrade,
)
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import group_names
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.store.enforcer.intents import Intent, IntentKind, IntentState
from ovirt_placement.store.enforcer.maintenance import (
    ENDED,
    UPGRADE_OF_RUN,
    HostPhase,
    HostProgress,
    MaintenanceRun,
    RunState,
    Work,
    upgrade_id,
)
from ovirt_placement.store.orders import Paused
from ovirt_service.errors import UserError

#: Phases in which the planner takes the VMs of a host away.
_EMPTIED: Final = (HostPhase.DRAINING, HostPhase.DEACTIVATING)
#: Two looks are this many times as far apart as one takes.
_LEAST_PAUSE_TURNS: Final = 5.0


@dataclass(eq=False)
class MaintenanceRuns:
    """The runs of all clusters, read from the store again and again; for one thread."""

    stores: Stores
    executor: Executor
    settings: EnforcerSettings
    flags: UpgradeFlags
    clock: Callable[[], float]
    notifications: Notifications
    _active: tuple[MaintenanceRun, ...] = field(default=(), init=False)
    #: When they are to be looked at, by the clock; never if there are none.
    due: float = field(default=inf, init=False)

    def __post_init__(self) -> None:
        self._store, self._intents = self.stores.maintenance, self.stores.intents
        self.commands = Commands(self.settings.maintenance, self._intents)

    def read(self) -> None:
        """Read them; look at once if an order has come. Raises `StoreAway`, as do the others."""
        self.commands.read()  # also while no run can be looked at, since the engine is away
        before, self._active = self._active, self._store.active()
        if {(run.id, run.state) for run in before} != {(run.id, run.state) for run in self._active}:
            self.due = self.clock()

    def leave(self) -> None:
        """Know of none, and end what runs for them: another process leads from now on, or none."""
        self._active, self.due = (), inf
        self.commands.leave()

    @property
    def draining(self) -> tuple[str, ...]:
        return tuple(sorted(host.host for run in self._active for host in run.hosts if host.draining))

    @property
    def emptied(self) -> tuple[str, ...]:
        """The hosts whose VMs are to be migrated away now; none of a run that is paused or ends."""
        running = (run for run in self._active if run.state is RunState.RUNNING)
        return tuple(host.host for run in running for host in run.hosts if host.phase in _EMPTIED)

    def returning_vms(self, cluster: str, snapshot: Snapshot) -> Returning | None:
        """The VMs that a run brings back to a cluster now; None if no run does."""
        for run in self._active:
            if run.cluster == cluster and brings_back(run):
                ended = self._intents.history(within_seconds=run.age_seconds)
                return returning_vms(run, snapshot, ended)
        return None

    def pop_due(self, snapshot: Snapshot) -> tuple[MaintenanceRun, ...]:
        """Those that are due, as they were before the engine was read."""
        # No upgrade is shown any more whose run has ended.
        under_way = {run.id for run in self._active}
        for cluster in snapshot.clusters:
            flag = cluster.upgrade_correlation_id or ""
            run_id = flag.removeprefix(UPGRADE_OF_RUN)
            is_left = cluster.upgrade_mode and run_id != flag and run_id not in under_way
            if is_left and run_id in {run.id for run in self._store.runs()}:
                self.flags.finish(cluster.id, run_id)
        if self.due > self.clock():
            return ()
        self.due = self.clock() + self.settings.interval_seconds if self._active else inf
        return tuple(run for run in self._active if run.cluster in snapshot.cluster_by_id)

    def advance(
        self,
        run: MaintenanceRun,
        seen: Observation,
        staying: Mapping[str, str],
        at_home: Mapping[str, Mapping[str, str]],
        turn_seconds: float,
    ) -> None:
        """Do what is next in a run, and look again soon where more may follow.

        `staying` are VMs that the last plan of its cluster could not take off hosts that are to be empty, and
        `at_home`, by the id of a run for which nothing is left to be done, those that it cannot bring back:
        each with the reasons. Raises what an executor raises.
        """
        self.flags.show(run)
        host = next((one for one in run.hosts if one.phase not in ENDED), None)
        if host is None:
            goes_on = self._bring_back(run, seen.snapshot, at_home.get(run.id))
        else:
            scene = self._scene(run, host, seen, staying)
            decision = decide(scene)
            self._carry_out(decision, scene, seen)
            waits = isinstance(decision, Wait) and (scene.blocked_by is None or not scene.blocked_by.runs)
            goes_on = host.phase is not HostPhase.WAITING or not waits
        if goes_on:
            pause = max(self.settings.poll_seconds, _LEAST_PAUSE_TURNS * turn_seconds)
            self.due = min(self.due, self.clock() + pause)

    def _scene(
        self, run: MaintenanceRun, host: HostProgress, seen: Observation, staying: Mapping[str, str]
    ) -> Scene:
        snapshot, known, hosts = seen.snapshot, seen.snapshot.vm_by_id, seen.snapshot.host_by_id

        def asked() -> tuple[Intent, ...]:
            actions = (one for one in self._intents.open_actions() if one.target == host.host)
            return tuple(one for one in actions if one.kind is not IntentKind.RUN_COMMAND)

        self.executor.follow_actions(asked())
        state = read_host(self.executor.connection, host.host)
        there = snapshot.vms_of_host.get(host.host, ())
        # They may be back, as long as it is not known that they have arrived.
        leaving = [one.vm for one in seen.open_intents if one.source == host.host]
        arriving = {one.vm for one in snapshot.pending if one.host == host.host}
        arriving.update(one.vm for one in seen.open_intents if one.target == host.host)
        ended = self._intents.actions(host.host, within_seconds=host.seconds)
        emptying = HostAction(IntentKind.MIGRATE_VM, host.host)
        closed = seen.gates.blocked_reason(snapshot, run.cluster, emptying)
        return Scene(
            run=run,
            host=host,
            settings=self.settings.maintenance,
            status=None if state is None else state.status,
            update_available=state is not None and state.update_available,
            vms={**_names(snapshot, leaving), **{vm.id: vm.name for vm in there}},
            arriving=_names(snapshot, arriving),
            staying={vm: why for vm, why in staying.items() if why},
            pinned=frozenset(vm.id for vm in there if not vm.migratable),
            down=_names(snapshot, (vm for vm in host.stopped if vm in known and known[vm].status == "down")),
            open=asked(),
            failed=ended[-1] if ended and ended[-1].state is IntentState.FAILED else None,
            upgraded=any(
                one.kind is IntentKind.UPGRADE_HOST and one.state is IntentState.DONE for one in ended
            ),
            closed=None if closed is None else str(closed),
            blocked_by=self.commands.status(CommandKind.BLOCKED_BY, run, host),
            command=self.commands.status(CommandKind.WORK, run, host),
            lost=tuple(
                progress.name
                for progress in run.hosts
                if progress.phase is HostPhase.DONE and progress.host in hosts and not hosts[progress.host].up
            ),
            unsound=self._unsound(run, snapshot) if host.phase is HostPhase.CHECKING else "",
        )

    def _unsound(self, run: MaintenanceRun, snapshot: Snapshot) -> str:
        """What is not as it was when the run began: rules, keys and the HA reservation; empty for nothing."""
        violated = [
            group_names(violation.groups, snapshot) or violation.constraint.asks
            for violation in find_violations(snapshot, run.cluster)
            if violation.hard and rule_key(violation) not in run.violated
        ]
        if violated:
            return f"violated since the run began: {', '.join(violated)}"
        announced = self.stores.ha_announcements.announcements()
        last = next((one for one in reversed(announced) if one.cluster == run.cluster), None)
        if last and last.kind == NoticeKind.HA_ALERT and last.age_seconds < run.age_seconds:
            return "the HA reservation of the cluster is not satisfied: ovirt-placement ha-check shows it"
        return ""

    def _carry_out(self, decision: Decision, scene: Scene, seen: Observation) -> None:
        run, host = scene.run, scene.host
        match decision:
            case Wait(message, output):
                self._note(run, host, message, output)
            case Enter():
                self._enter(scene, decision)
            case HostAction():
                self._ask_for_action(scene, seen, decision)
            case CommandKind():
                try:
                    self.commands.start(decision, run, host, epoch=seen.epoch)
                except Paused as why:
                    self._note(run, host, f"not now: {why}")
            case StopCommand():
                self.commands.stop(run, host, CommandKind.WORK)
            case End(state, message):
                self._end_run(run, state, message)
        if scene.blocked_by is not None and not scene.blocked_by.runs:
            self.commands.forget(run, host, CommandKind.BLOCKED_BY)

    def _note(self, run: MaintenanceRun, host: HostProgress, message: str, output: str = "") -> None:
        """Write down what a host waits for; what a command prints meanwhile is not logged."""
        shown = f"{message}: {output}" if output else message
        if shown != host.message:
            self._store.note(run.id, host.host, message=shown)
            if not output or not host.message.startswith(message):
                report(LogText.HOST_WAITS, host=host.name, phase=host.phase, why=shown)

    def _enter(self, scene: Scene, entered: Enter) -> None:
        run, host = scene.run, scene.host
        changes: dict[str, Any] = {} if entered.draining is None else {"draining": entered.draining}
        if host.phase is HostPhase.WAITING:
            changes["vms"] = sorted(scene.vms)
        text = LogText.HOST_WAITS if entered.message else LogText.HOST_ENTERS
        report(text, host=host.name, phase=entered.phase, why=entered.message)
        self._store.enter(run.id, host.host, entered.phase, entered.message, **changes)
        failed = sum(one.phase is HostPhase.FAILED for one in run.hosts) + 1
        if entered.phase is HostPhase.FAILED and failed > run.request.failures:
            self._end_run(run, RunState.FAILED, f"host {host.name} has failed: {entered.message}")

    def _ask_for_action(self, scene: Scene, seen: Observation, action: HostAction) -> None:
        run, host = scene.run, scene.host
        try:
            admitted = seen.gates.admit(seen.snapshot, run.cluster, action)
        except Closed as why:
            self._note(run, host, f"not now: {why}")
            return
        if action.kind is IntentKind.STOP_VM and action.vm not in host.stopped:
            self._store.note(run.id, host.host, stopped=[*host.stopped, action.vm])
        self.executor.begin(Task(admitted, seen, reboot=run.request.reboot))

    def _bring_back(self, run: MaintenanceRun, snapshot: Snapshot, kept: Mapping[str, str] | None) -> bool:
        """End a run once its VMs are back, or stay for a reason; whether it is still to be waited for."""
        if not brings_back(run):
            self._finish(run)
        elif run.state is RunState.STOPPING:
            self._end_run(run, RunState.STOPPED, "stopped before all VMs were back on their hosts")
        elif (paused := run.state is RunState.PAUSED) or kept is None:
            message = "the run is paused" if paused else "VMs go back to their hosts"
            if message != run.message:
                self._store.say(run.id, message)
                report(LogText.RUN_WAITS, run=run.id, why=message)
            return True
        else:
            self._finish(run, not_back(snapshot, kept))
        return False

    def _finish(self, run: MaintenanceRun, more: str = "") -> None:
        counted = [(sum(host.phase is phase for host in run.hosts), phase) for phase in ENDED]
        words = ", ".join(f"{count} {phase}" for count, phase in counted if count)
        self._end_run(run, RunState.DONE, words + more)

    def _end_run(self, run: MaintenanceRun, state: RunState, message: str) -> None:
        self.commands.end(run)
        self._store.end(run.id, state, message)
        self.flags.finish(run.cluster, run.id)
        text, kind = LogText.RUN_ENDED, NoticeKind.MAINTENANCE_ENDED
        if state is RunState.FAILED:
            text, kind = LogText.RUN_FAILED, NoticeKind.MAINTENANCE_FAILED
        name = run.cluster_name
        report(text, run=run.id, cluster=name, state=state, why=message)
        self.notifications.report(kind, cluster_id=run.cluster, cluster=name, run=run.id, reason=message)


def _names(snapshot: Snapshot, vms: Iterable[str]) -> dict[str, str]:
    return {vm: snapshot.vm_by_id[vm].name for vm in vms if vm in snapshot.vm_by_id}


#: How often what failed is tried again, in cycles.
_CYCLES_BETWEEN: Final = 30


class UpgradeFlags:
    """Has the engine show how far runs are, unless an upgrade by others is under way; for one thread."""

    def __init__(self, connection: EngineConnection) -> None:
        self._connection = connection
        self._shown: dict[str, int] = {}
        #: For how many looks nothing is tried of a run, or of a flag that stays.
        self._rests: dict[str, int] = {}

    def show(self, run: MaintenanceRun) -> None:
        if run.request.work is Work.NOTHING or run.state is RunState.STOPPING:
            return
        percent = 100 * sum(host.phase in ENDED for host in run.hosts) // max(1, len(run.hosts))
        if self._shown.get(run.id) != percent:
            self._attempt(run.id, "is not shown as an upgrade", partial(self._show_progress, run, percent))

    def finish(self, cluster: str, run: str) -> None:
        """Take the flag of a run away, if it is still its own."""
        self._shown.pop(run, None)
        what = "has ended and is still shown as an upgrade"
        self._attempt(run, what, partial(self._finish_upgrade, cluster, upgrade_id(run)))

    def _attempt(self, run: str, what: str, work: Callable[[], None]) -> None:
        """Do it, unless it failed a few looks ago."""
        left = self._rests.pop(run, 0)
        if left > 1:
            self._rests[run] = left - 1
        if left > 0:
            return
        try:
            work()
        except EngineAway:
            return
        except UserError as error:
            report(LogText.FLAG_FAILED, run=run, what=what, error=error)
            self._rests[run] = _CYCLES_BETWEEN

    def _show_progress(self, run: MaintenanceRun, percent: int) -> None:
        """Begin it where none is under way, as after a restart of the engine, which forgets them all.

        An engine that does not say whose an upgrade is is shown none: it could not be distinguished from
        those of others.
        """
        state, correlation_id = read_upgrade(self._connection, run.cluster), upgrade_id(run.id)
        if state.attributed:
            if state.running and state.correlation_id != correlation_id:
                return
            if not state.running:
                start_upgrade(self._connection, run.cluster, correlation_id)
            if percent:
                show_progress(self._connection, run.cluster, correlation_id, percent)
        self._shown[run.id] = percent

    def _finish_upgrade(self, cluster: str, correlation_id: str) -> None:
        state = read_upgrade(self._connection, cluster)
        if state.running and state.correlation_id == correlation_id:
            finish_upgrade(self._connection, cluster, correlation_id)
