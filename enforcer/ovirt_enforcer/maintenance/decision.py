"""What is next for the host of a maintenance run that has its turn, and which VMs go back in the end.

The safe order: mark it as draining, let the planner move its VMs, deactivate it only when it is empty,
upgrade it in maintenance, activate it, look at it while it soaks. What has begun is found again in the engine
and the store, whichever process decides next.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ovirt_enforcer.gates.gate import HostAction
from ovirt_enforcer.gates.people import rule_key
from ovirt_enforcer.maintenance.commands import CommandKind, CommandStatus
from ovirt_enforcer.settings import MaintenanceSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.model.names import vm_name
from ovirt_placement.planning.requests import Moved
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.store.enforcer.intents import Intent, IntentKind, IntentState
from ovirt_placement.store.enforcer.maintenance import (
    ENDED,
    HostPhase,
    HostProgress,
    MaintenanceRun,
    RunState,
    Work,
)

#: A request that the engine refused is made again after this many seconds.
_AGAIN_SECONDS = 30.0
_NAMED = 5
_NOT_ALLOWED = "cannot migrate, and its shutdown is not allowed (--stop)"
_GOING = ("preparing_for_maintenance", "maintenance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is known when a decision is made."""

    run: MaintenanceRun
    host: HostProgress
    settings: MaintenanceSettings
    #: Of the engine; None if it has no such host.
    status: str | None
    update_available: bool
    #: VMs on the host, and those on their way there, by id with their names.
    vms: Mapping[str, str]
    arriving: Mapping[str, str] = field(default_factory=dict)
    #: Those of `vms` that no migration can take away, with the reason.
    staying: Mapping[str, str] = field(default_factory=dict)
    #: Those that may not migrate at all.
    pinned: frozenset[str] = frozenset()
    #: The stopped VMs of this host that are still down, with their names.
    down: Mapping[str, str] = field(default_factory=dict)
    #: Actions for it that are under way, and the last that failed in this phase.
    open: tuple[Intent, ...] = ()
    failed: Intent | None = None
    #: Whether an upgrade of it has ended in this phase.
    upgraded: bool = False
    #: Why emptying it must not begin; None if every gate is open.
    closed: str | None = None
    #: The administrator's commands; None if they were not run.
    blocked_by: CommandStatus | None = None
    command: CommandStatus | None = None
    #: Hosts that are done, and are not up.
    lost: tuple[str, ...] = ()
    #: Why the cluster is not as it should be between two hosts; empty if it is.
    unsound: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do yet; the text says for what it waits, and what else is to be seen of it."""

    message: str
    output: str = ""


@dataclass(frozen=True, slots=True)
class Enter:
    phase: HostPhase
    message: str = ""
    #: Whether it is marked from now on; None leaves it as it is.
    draining: bool | None = None


@dataclass(frozen=True, slots=True)
class StopCommand:
    """The work is ended, with all that it has started."""


@dataclass(frozen=True, slots=True)
class End:
    """The run ends: no other host is touched."""

    state: RunState
    message: str


#: An action is asked for, a command of a kind is run.
Decision = Wait | Enter | HostAction | CommandKind | StopCommand | End


def decide(scene: Scene) -> Decision:
    if scene.open and scene.host.phase not in (HostPhase.WORKING, HostPhase.ACTIVATING):
        return _under_way(scene)
    if scene.status is None:
        return _fail_run(scene, "the engine has it no more")
    return _PHASES[scene.host.phase](scene)


def _under_way(scene: Scene) -> Decision:
    """Wait for what the engine was asked for, as long as the phase of the host may take."""
    phase, late = scene.host.phase, scene.host.seconds > scene.settings.drain_seconds
    if phase is HostPhase.DRAINING and late:
        return Enter(HostPhase.FAILED, _half_drained(scene), draining=False)
    if phase is HostPhase.DEACTIVATING and late:
        return _fail_run(scene, f"it does not arrive in maintenance{_because(scene)}")
    if phase is HostPhase.CHECKING and scene.host.seconds > scene.settings.return_seconds:
        return _fail_run(scene, "it is up, but the engine does not finish what it was asked for")
    return Wait("the engine is at work")


def _waiting(scene: Scene) -> Decision:
    if scene.run.state is RunState.STOPPING:
        return End(RunState.STOPPED, "stopped before the next host")
    if scene.run.state is RunState.PAUSED:
        return Wait("the run is paused")
    if scene.lost:
        return End(RunState.FAILED, f"{', '.join(scene.lost)} went down after its maintenance: the run stops")
    if scene.status not in ("up", *_GOING):
        return Enter(HostPhase.FAILED, f"its status is {scene.status}")
    if scene.run.request.work is Work.UPGRADE and scene.status == "up" and not scene.update_available:
        return Enter(HostPhase.SKIPPED, "the engine knows of no updates for it")
    return _gated(scene)


def _gated(scene: Scene) -> Decision:
    if scene.closed is not None:
        return Wait(scene.closed)
    if scene.settings.blocked_by:
        if scene.blocked_by is None:
            return CommandKind.BLOCKED_BY
        if scene.blocked_by.runs:
            return Wait(f"blocked_by runs since {scene.blocked_by.since}", scene.blocked_by.text)
        if scene.blocked_by.status != 0 or scene.blocked_by.interrupted:
            return Wait(f"held back by blocked_by: {scene.blocked_by.why}")
    return Enter(HostPhase.DRAINING, draining=True)


def _draining(scene: Scene) -> Decision:
    if scene.status in _GOING:
        return Enter(HostPhase.DEACTIVATING)
    if scene.status != "up":
        return _fail_run(scene, f"its status is {scene.status}")
    if scene.run.state is RunState.STOPPING:
        return End(RunState.STOPPED, f"stopped: {_half_drained(scene)}")
    if scene.run.state is RunState.PAUSED:
        return Wait(f"the run is paused: {_half_drained(scene)}")
    if not scene.vms and not scene.arriving:
        return Enter(HostPhase.DEACTIVATING)
    allowed = scene.pinned.intersection(scene.run.request.stop_vms)
    if allowed and not _rests(scene):
        return HostAction(IntentKind.STOP_VM, scene.host.host, min(allowed))
    if scene.host.seconds > scene.settings.drain_seconds:
        return Enter(HostPhase.FAILED, _half_drained(scene), draining=False)
    return Wait(_half_drained(scene))


def _deactivating(scene: Scene) -> Decision:
    if scene.status == "maintenance":
        stops = scene.run.state is RunState.STOPPING
        return Enter(HostPhase.ACTIVATING if stops else HostPhase.WORKING)
    if scene.status == "preparing_for_maintenance":
        if scene.host.seconds > scene.settings.drain_seconds:
            return _fail_run(scene, f"it does not arrive in maintenance{_because(scene)}")
        return Wait(f"the engine empties it{_because(scene)}" if scene.vms else "on its way to maintenance")
    if scene.status != "up":
        return _fail_run(scene, f"its status is {scene.status}")
    if scene.run.state is not RunState.RUNNING or scene.vms or scene.arriving:
        return Enter(HostPhase.DRAINING)
    if _rests(scene):
        return Wait(f"the deactivation did not begin: {_why(scene)}")
    return HostAction(IntentKind.DEACTIVATE_HOST, scene.host.host)


def _working(scene: Scene) -> Decision:
    if scene.run.request.work is Work.COMMAND:
        return _commanded(scene)
    if scene.run.request.work is Work.NOTHING:
        return Enter(HostPhase.ACTIVATING)
    if scene.status == "up":
        if scene.update_available and not (scene.open or scene.upgraded):  # others have brought it back
            return Enter(HostPhase.DRAINING)
        return Enter(HostPhase.CHECKING, draining=False)
    if scene.status == "install_failed":
        return _fail_run(scene, "its upgrade failed, and it is out of service")
    if scene.status != "maintenance" or scene.open:
        return _patient(scene, "is upgraded")
    if not scene.update_available or scene.run.state is RunState.STOPPING:
        return Enter(HostPhase.ACTIVATING)
    if scene.run.state is RunState.PAUSED:
        return Wait("the run is paused: it is in maintenance")
    if _rests(scene):
        return _patient(scene, f"the upgrade did not begin: {_why(scene)}")
    return HostAction(IntentKind.UPGRADE_HOST, scene.host.host)


def _commanded(scene: Scene) -> Decision:
    command, stopping = scene.command, scene.run.state is RunState.STOPPING
    if command is None and not stopping:
        if scene.status == "up":  # others have brought it back
            return Enter(HostPhase.DRAINING)
        if scene.status != "maintenance":
            return _patient(scene, "is to be in maintenance for the command")
        if scene.run.state is RunState.PAUSED:
            return Wait("the run is paused: it is in maintenance")
        return CommandKind.WORK
    if command is None:
        return Enter(HostPhase.ACTIVATING)
    if command.runs:
        return StopCommand() if stopping else Wait(f"the command runs since {command.since}", command.text)
    if command.interrupted:
        return Enter(HostPhase.ACTIVATING, f"the command {command.why}")
    if command.status != 0:
        return _fail_run(scene, f"the command failed, and the host stays as it is: {command.why}")
    return Enter(HostPhase.ACTIVATING)


def _activating(scene: Scene) -> Decision:
    if scene.status == "up":
        return Enter(HostPhase.CHECKING, draining=False)
    if scene.status == "install_failed":
        return _fail_run(scene, "it is out of service")
    if scene.status == "maintenance" and not scene.open:
        if scene.run.state is RunState.PAUSED:
            return Wait("the run is paused: it is in maintenance")
        if not _rests(scene):
            return HostAction(IntentKind.ACTIVATE_HOST, scene.host.host)
    return _patient(scene, "comes up")


def _checking(scene: Scene) -> Decision:
    if scene.status != "up":
        return _patient(scene, f"was up, and its status is {scene.status}")
    if scene.down and not _rests(scene) and scene.run.state is not RunState.PAUSED:
        return HostAction(IntentKind.START_VM, scene.host.host, min(scene.down))
    if scene.down:
        names = ", ".join(sorted(scene.down.values()))
        return _patient(scene, f"{names} was stopped for it and does not start: {_why(scene)}")
    if scene.command is not None and scene.command.interrupted:
        message = f"it is up again, but the command {scene.command.why}"
        if scene.run.state is RunState.STOPPING:
            return End(RunState.STOPPED, f"stopped: host {scene.host.name}: {message}")
        return Enter(HostPhase.FAILED, message)
    if scene.run.state is RunState.STOPPING and (left := _left_undone(scene)):
        return End(RunState.STOPPED, f"stopped: host {scene.host.name} is up again, and {left}")
    if scene.unsound:
        return _patient(scene, scene.unsound)
    if scene.host.seconds < scene.run.request.soak_seconds and scene.run.state is not RunState.STOPPING:
        return Wait("is up and soaks")
    return Enter(HostPhase.DONE)


def _left_undone(scene: Scene) -> str:
    """What was to be done with a host, and has not begun; empty for nothing."""
    work = scene.run.request.work
    if work is Work.UPGRADE and scene.update_available:
        return "was not upgraded"
    return "the command was not run" if work is Work.COMMAND and scene.command is None else ""


_PHASES = {
    HostPhase.WAITING: _waiting,
    HostPhase.DRAINING: _draining,
    HostPhase.DEACTIVATING: _deactivating,
    HostPhase.WORKING: _working,
    HostPhase.ACTIVATING: _activating,
    HostPhase.CHECKING: _checking,
}


def _patient(scene: Scene, message: str) -> Decision:
    """Wait as long as a host may take to come back; then nothing else is touched."""
    if scene.host.seconds > scene.settings.return_seconds:
        if scene.status == "up":
            return _fail_run(scene, f"it is up, and not as it was: {message}")
        return _fail_run(scene, f"it does not come back: its status is {scene.status}, and it {message}")
    return Wait(message)


def _fail_run(scene: Scene, message: str) -> End:
    return End(RunState.FAILED, f"host {scene.host.name}: {message}")


def _rests(scene: Scene) -> bool:
    return scene.failed is not None and scene.failed.age_seconds < _AGAIN_SECONDS


def _why(scene: Scene) -> str:
    return "no reason is known" if scene.failed is None else scene.failed.reason or "no reason is known"


def _half_drained(scene: Scene) -> str:
    """How many of its VMs have left, and what holds the others."""
    gone = [vm for vm in scene.host.vms if vm not in scene.vms]
    return f"{len(gone)} of {len(scene.host.vms)} VMs have left{_because(scene)}"


def _because(scene: Scene) -> str:
    """What holds those that are there; where nothing does, their names, unless there are many."""
    known = {**scene.arriving, **scene.vms}
    held = {
        **dict.fromkeys(scene.arriving, "is on its way there"),
        **{vm: f"stays: {why}" for vm, why in scene.staying.items() if vm in scene.vms},
        **dict.fromkeys(scene.pinned.difference(scene.run.request.stop_vms), _NOT_ALLOWED),
    }
    named = held or {vm: "is still there" for vm in scene.vms if len(scene.vms) <= _NAMED}
    return f": {'; '.join(f'{known[vm]} {why}' for vm, why in sorted(named.items()))}" if named else ""


#: A VM whose way back has failed this many times stays.
_MOST_FAILURES: Final = 3
_FAILED: Final = f"its migration back has failed {_MOST_FAILURES} times"


@dataclass(frozen=True, slots=True)
class Returning:
    """The VMs of a run that are to go back now."""

    run: str
    moved: tuple[Moved, ...]
    #: Those of them that stay all the same, with the reason.
    given_up: Mapping[str, str]


def brings_back(run: MaintenanceRun) -> bool:
    return run.request.back is not Return.NONE and all(host.phase in ENDED for host in run.hosts)


def returning_vms(run: MaintenanceRun, snapshot: Snapshot, migrations: Sequence[Intent]) -> Returning | None:
    """What a run asks for now; None if nothing, or not now. `migrations` have ended since it began.

    A VM goes back once: what takes it away afterwards, a repair or a person, has a reason of its own.
    """
    if run.state is not RunState.RUNNING or not brings_back(run):
        return None
    wanted = None
    if run.request.back is not Return.ALL:  # VMs of rules that are violated, and were not when the run began
        found = (one for one in find_violations(snapshot, run.cluster) if rule_key(one) not in run.violated)
        wanted = {vm for one in found for vm in one.constraint.vms}
    ours = tuple(one for one in migrations if one.cluster == run.cluster)
    moved = tuple(one for one in _moved(run, snapshot, ours) if wanted is None or one.vm in wanted)
    failed = Counter((one.vm, one.target) for one in ours if one.state is IntentState.FAILED)
    given_up = (one.vm for one in moved if failed[one.vm, one.source] >= _MOST_FAILURES)
    return Returning(run.id, moved, dict.fromkeys(given_up, _FAILED))


def _moved(run: MaintenanceRun, snapshot: Snapshot, migrations: Sequence[Intent]) -> Iterator[Moved]:
    last = {one.vm: one.target for one in migrations if one.state is IntentState.DONE}
    arrived = {(one.vm, one.target) for one in migrations if one.state is IntentState.DONE}
    homes: dict[str, str] = {}  # the first host of the run that a VM was taken off
    for host in run.hosts:
        for vm in host.vms:
            homes.setdefault(vm, host.host)
    for vm, home in homes.items():
        known = snapshot.vm_by_id.get(vm)
        if known is None or known.host is None or known.hosted_engine or known.host == home:
            continue
        if (vm, home) not in arrived:
            yield Moved(vm, home, last.get(vm, known.host))


def not_back(snapshot: Snapshot, kept: Mapping[str, str]) -> str:
    """Which VMs stay where they went, and why."""
    named = [f"{vm_name(vm, snapshot)} ({why})" for vm, why in list(kept.items())[:_NAMED]]
    if more := len(kept) - len(named):
        named.append(f"and {more} more")
    return f"; not back on their hosts: {', '.join(named)}" if kept else ""
