"""What is next for a host, from what is known: the safe order, and what ends a run."""

from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_enforcer.maintenance.commands import CommandKind, CommandStatus
from ovirt_enforcer.maintenance.decision import Ask, End, Enter, RunCommand, Scene, StopCommand, Wait, decide
from ovirt_enforcer.settings import MaintenanceSettings
from ovirt_placement.store.enforcer.intents import IntentKind, IntentState
from ovirt_placement.store.enforcer.maintenance import HostPhase, MaintenanceRequest, RunState, Work
from tests.enforcer.gates.judging import intent
from tests.enforcer.maintenance.stage import host_of_run
from tests.stored import run_of

UP: dict[str, Any] = {"status": "up", "update_available": True}
AWAY: dict[str, Any] = {"status": "maintenance", "update_available": True}


def scene(
    phase: HostPhase,
    *,
    state: RunState = RunState.RUNNING,
    seconds: float = 1.0,
    request: MaintenanceRequest = MaintenanceRequest(),  # noqa: B008 - immutable
    **known: Any,
) -> Scene:
    host = host_of_run(phase, seconds, draining=True, vms=("a", "b", "c"))
    run = run_of(host, state=state, request=request)
    defaults: dict[str, Any] = {"settings": MaintenanceSettings(), "vms": {}, **UP}
    return Scene(run=run, host=host, **{**defaults, **known})


def test_the_safe_order() -> None:
    assert decide(scene(HostPhase.WAITING)) == Enter(HostPhase.DRAINING, draining=True)
    assert isinstance(decide(scene(HostPhase.DRAINING, vms={"a": "a"})), Wait)
    assert decide(scene(HostPhase.DRAINING)) == Enter(HostPhase.DEACTIVATING)
    assert decide(scene(HostPhase.DEACTIVATING)) == Ask(IntentKind.DEACTIVATE_HOST)
    assert decide(scene(HostPhase.DEACTIVATING, **AWAY)) == Enter(HostPhase.WORKING)
    assert decide(scene(HostPhase.WORKING, **AWAY)) == Ask(IntentKind.UPGRADE_HOST)
    done = scene(HostPhase.WORKING, status="maintenance", update_available=False)
    assert decide(done) == Enter(HostPhase.ACTIVATING)
    assert decide(scene(HostPhase.ACTIVATING, **AWAY)) == Ask(IntentKind.ACTIVATE_HOST)
    assert decide(scene(HostPhase.ACTIVATING)) == Enter(HostPhase.CHECKING, draining=False)
    assert decide(scene(HostPhase.CHECKING)) == Wait("is up and soaks")
    assert decide(scene(HostPhase.CHECKING, seconds=61.0)) == Enter(HostPhase.DONE)
    asked = MaintenanceRequest(soak_seconds=240.0)
    assert decide(scene(HostPhase.CHECKING, seconds=239.0, request=asked)) == Wait("is up and soaks")


@pytest.mark.parametrize("known", [{"vms": {"a": "a"}}, {"arriving": {"a": "a"}}])
def test_what_is_not_empty_is_not_deactivated(known: dict[str, Any]) -> None:
    assert isinstance(decide(scene(HostPhase.DRAINING, **known)), Wait)
    assert decide(scene(HostPhase.DEACTIVATING, **known)) == Enter(HostPhase.DRAINING)


def test_the_next_host_waits_for_gates_alerts_and_the_last_host() -> None:
    waiting = HostPhase.WAITING
    assert decide(scene(waiting, closed="not at night")) == Wait("not at night")
    asks: dict[str, Any] = {"settings": MaintenanceSettings(blocked_by="alerts")}
    assert decide(scene(waiting, **asks)) == RunCommand(CommandKind.BLOCKED_BY)
    said = {
        CommandStatus(None, "counts", "noon"): Wait("blocked_by runs since noon", "counts"),
        CommandStatus(1, "red"): Wait("held back by blocked_by: red"),
        CommandStatus(3): Wait("held back by blocked_by: exit status 3"),
        CommandStatus(-15, "", "", "was ended after 5 s"): Wait(
            "held back by blocked_by: was ended after 5 s"
        ),
        CommandStatus(0): Enter(HostPhase.DRAINING, draining=True),
    }
    for status, decision in said.items():
        assert decide(scene(waiting, blocked_by=status, **asks)) == decision
    lost = decide(scene(waiting, lost=("h0",)))
    assert lost == End(RunState.FAILED, "h0 went down after its maintenance: the run stops")
    assert isinstance(decide(scene(waiting, state=RunState.PAUSED)), Wait)
    assert isinstance(decide(scene(waiting, update_available=False)), Enter)
    idle = scene(waiting, update_available=False, request=MaintenanceRequest(work=Work.NOTHING))
    assert decide(idle) == Enter(HostPhase.DRAINING, draining=True)


def test_a_host_that_does_not_come_back_ends_the_run() -> None:
    for phase in (HostPhase.WORKING, HostPhase.ACTIVATING, HostPhase.CHECKING):
        assert isinstance(decide(scene(phase, status="non_responsive", update_available=False)), Wait)
        late = decide(scene(phase, status="non_responsive", update_available=False, seconds=1801.0))
        assert isinstance(late, End)
        assert late.state is RunState.FAILED
        assert "host h1: it does not come back: its status is non_responsive" in late.message
    assert isinstance(decide(scene(HostPhase.WORKING, status="install_failed")), End)
    assert isinstance(decide(scene(HostPhase.CHECKING, unsound="a rule is violated", seconds=1801.0)), End)


def test_a_vm_that_cannot_migrate_is_stopped_by_consent_alone() -> None:
    there: dict[str, Any] = {"vms": {"b": "db"}, "pinned": frozenset("b"), "staying": {"b": "is pinned"}}
    decision = decide(scene(HostPhase.DRAINING, **there))
    assert decision == Wait(
        "2 of 3 VMs have left: db cannot migrate, and its shutdown is not allowed (--stop)"
    )
    allowed = scene(HostPhase.DRAINING, request=MaintenanceRequest(stop_vms=("b",)), **there)
    assert decide(allowed) == Ask(IntentKind.STOP_VM, "b")
    assert decide(scene(HostPhase.CHECKING, down={"b": "db"})) == Ask(IntentKind.START_VM, "b")


def test_a_host_that_does_not_become_empty_works_on_and_is_named() -> None:
    late = scene(HostPhase.DRAINING, seconds=3601.0, vms={"a": "app"}, staying={"a": "no room"})
    assert decide(late) == Enter(HostPhase.FAILED, "2 of 3 VMs have left: app stays: no room", draining=False)


@pytest.mark.parametrize(
    ("phase", "seconds", "late"),
    [
        (
            HostPhase.DRAINING,
            3600.0,
            Enter(HostPhase.FAILED, "2 of 3 VMs have left: app is still there", draining=False),
        ),
        (
            HostPhase.DEACTIVATING,
            3600.0,
            End(RunState.FAILED, "host h1: it does not arrive in maintenance: app is still there"),
        ),
        (
            HostPhase.CHECKING,
            1800.0,
            End(RunState.FAILED, "host h1: it is up, but the engine does not finish what it was asked for"),
        ),
    ],
)
def test_what_the_engine_never_finishes_is_waited_for_no_longer_than_the_phase_may_take(
    phase: HostPhase, seconds: float, late: Enter | End
) -> None:
    under_way: dict[str, Any] = {"open": (intent(IntentState.ACCEPTED, 5.0),), "vms": {"a": "app"}}
    assert decide(scene(phase, seconds=seconds, **under_way)) == Wait("the engine is at work")
    assert decide(scene(phase, seconds=seconds + 1.0, **under_way)) == late


def test_a_run_that_is_to_end_leaves_no_host_out_of_service() -> None:
    stopping: dict[str, Any] = {"state": RunState.STOPPING}
    half = decide(scene(HostPhase.DRAINING, vms={"a": "app"}, **stopping))
    assert half == End(RunState.STOPPED, "stopped: 2 of 3 VMs have left: app is still there")
    assert decide(scene(HostPhase.DEACTIVATING, **AWAY, **stopping)) == Enter(HostPhase.ACTIVATING)
    assert decide(scene(HostPhase.ACTIVATING, **AWAY, **stopping)) == Ask(IntentKind.ACTIVATE_HOST)
    assert decide(scene(HostPhase.CHECKING, **stopping)) == Enter(HostPhase.DONE)
    assert isinstance(decide(scene(HostPhase.WAITING, **stopping)), End)


def test_a_refused_request_is_made_again_after_a_while() -> None:
    refused = intent(IntentState.FAILED, 5.0, error="it has a task")
    again = replace(refused, age_seconds=31.0)
    assert isinstance(decide(scene(HostPhase.DEACTIVATING, failed=refused)), Wait)
    assert decide(scene(HostPhase.DEACTIVATING, failed=again)) == Ask(IntentKind.DEACTIVATE_HOST)


def test_a_command_in_place_of_the_upgrade() -> None:
    by_command: dict[str, Any] = {"request": MaintenanceRequest(work=Work.COMMAND), **AWAY}
    working = HostPhase.WORKING
    runs, failed = CommandStatus(None, "erases", "noon"), CommandStatus(3, "no")
    cut_off = CommandStatus(-9, "erases", "noon", "was ended after 5 s")
    assert decide(scene(working, **by_command)) == RunCommand(CommandKind.WORK)
    assert decide(scene(working, command=runs, **by_command)) == Wait("the command runs since noon", "erases")
    done = scene(working, command=CommandStatus(0), **by_command)
    assert decide(done) == Enter(HostPhase.ACTIVATING)
    assert isinstance(decide(scene(working, command=failed, **by_command)), End)
    activated = decide(scene(working, command=cut_off, **by_command))
    assert activated == Enter(HostPhase.ACTIVATING, "the command was ended after 5 s: erases")
    by_command |= UP
    again = decide(scene(HostPhase.CHECKING, command=cut_off, **by_command))
    assert again == Enter(HostPhase.FAILED, "it is up again, but the command was ended after 5 s: erases")


def test_a_command_where_the_run_is_paused_or_stopped() -> None:
    by_command: dict[str, Any] = {"request": MaintenanceRequest(work=Work.COMMAND), **AWAY}
    paused, stopping = ({**by_command, "state": state} for state in (RunState.PAUSED, RunState.STOPPING))
    working, runs = HostPhase.WORKING, CommandStatus(None, "", "noon")
    assert isinstance(decide(scene(working, **paused)), Wait)
    assert isinstance(decide(scene(working, command=runs, **paused)), Wait)
    assert decide(scene(working, **stopping)) == Enter(HostPhase.ACTIVATING)
    assert decide(scene(working, command=runs, **stopping)) == StopCommand()
    stopped = CommandStatus(-15, "", "noon", "was stopped")
    activated = decide(scene(working, command=stopped, **stopping))
    assert activated == Enter(HostPhase.ACTIVATING, "the command was stopped")
    stopping |= UP
    end = decide(scene(HostPhase.CHECKING, command=stopped, **stopping))
    assert isinstance(end, End)
    assert end.state is RunState.STOPPED
