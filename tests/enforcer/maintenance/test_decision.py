"""What is next for a host, from what is known; who goes home in the end, and what the engine shows of it."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_enforcer.gates.gate import HostAction
from ovirt_enforcer.maintenance.commands import CommandKind, CommandStatus
from ovirt_enforcer.maintenance.decision import End, Enter, Scene, StopCommand, Wait, decide, returning_vms
from ovirt_enforcer.maintenance.runs import UpgradeFlags
from ovirt_enforcer.settings import MaintenanceSettings
from ovirt_enforcer.watchers.engine_watch import DrainWatch
from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.store.enforcer.intents import IntentKind, IntentState
from ovirt_placement.store.enforcer.maintenance import (
    HostPhase,
    MaintenanceRequest,
    MaintenanceRun,
    RunState,
    Work,
)
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Caller
from ovirt_simulator.http.server import serve
from tests.builders import CLUSTER, host, snapshot, vm
from tests.enforcer.gates.judging import intent
from tests.enforcer.maintenance.stage import host_of_run
from tests.kit.notices import KeptNotices
from tests.scenarios.stage import START
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
    assert decide(scene(HostPhase.DEACTIVATING)) == HostAction(IntentKind.DEACTIVATE_HOST, "h1")
    assert decide(scene(HostPhase.DEACTIVATING, **AWAY)) == Enter(HostPhase.WORKING)
    assert decide(scene(HostPhase.WORKING, **AWAY)) == HostAction(IntentKind.UPGRADE_HOST, "h1")
    done = scene(HostPhase.WORKING, status="maintenance", update_available=False)
    assert decide(done) == Enter(HostPhase.ACTIVATING)
    assert decide(scene(HostPhase.ACTIVATING, **AWAY)) == HostAction(IntentKind.ACTIVATE_HOST, "h1")
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
    asks: dict[str, Any] = {"settings": MaintenanceSettings(blocked_by="alerts")}
    for place in ("up", "preparing_for_maintenance", "maintenance"):  # be it that others have put it there
        assert decide(scene(waiting, status=place, closed="not at night")) == Wait("not at night")
        assert decide(scene(waiting, status=place, **asks)) == CommandKind.BLOCKED_BY
    assert decide(scene(HostPhase.DRAINING, **AWAY)) == Enter(HostPhase.DEACTIVATING)
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
    assert decide(allowed) == HostAction(IntentKind.STOP_VM, "h1", "b")
    assert decide(scene(HostPhase.CHECKING, down={"b": "db"})) == HostAction(IntentKind.START_VM, "h1", "b")


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
    assert decide(scene(HostPhase.ACTIVATING, **AWAY, **stopping)) == HostAction(
        IntentKind.ACTIVATE_HOST, "h1"
    )
    assert decide(scene(HostPhase.CHECKING, update_available=False, **stopping)) == Enter(HostPhase.DONE)
    assert isinstance(decide(scene(HostPhase.WAITING, **stopping)), End)


def test_a_refused_request_is_made_again_after_a_while() -> None:
    refused = intent(IntentState.FAILED, 5.0, error="it has a task")
    again = replace(refused, age_seconds=31.0)
    assert isinstance(decide(scene(HostPhase.DEACTIVATING, failed=refused)), Wait)
    assert decide(scene(HostPhase.DEACTIVATING, failed=again)) == HostAction(IntentKind.DEACTIVATE_HOST, "h1")


def test_a_host_that_others_bring_back_before_its_upgrade_is_not_done() -> None:
    working = HostPhase.WORKING
    for state in (RunState.RUNNING, RunState.PAUSED, RunState.STOPPING):
        assert decide(scene(working, state=state)) == Enter(HostPhase.DRAINING)
    done = Enter(HostPhase.CHECKING, draining=False)
    # One that has been upgraded may have further updates by now.
    for known in (
        {"upgraded": True},
        {"update_available": False},
        {"open": (intent(IntentState.ACCEPTED, 1.0),)},
    ):
        assert decide(scene(working, **known)) == done


def test_where_the_run_is_stopped_no_upgrade_begins() -> None:
    stopping: dict[str, Any] = {"state": RunState.STOPPING, **AWAY}
    assert decide(scene(HostPhase.WORKING, **stopping)) == Enter(HostPhase.ACTIVATING)
    under_way = scene(HostPhase.WORKING, open=(intent(IntentState.ACCEPTED, 1.0),), **stopping)
    assert isinstance(decide(under_way), Wait)


@pytest.mark.parametrize(
    ("work", "known", "said"),
    [
        (Work.UPGRADE, {}, "stopped: host h1 is up again, and was not upgraded"),
        (Work.COMMAND, {}, "stopped: host h1 is up again, and the command was not run"),
        (Work.UPGRADE, {"update_available": False}, ""),
        (Work.COMMAND, {"command": CommandStatus(0)}, ""),
        (Work.NOTHING, {}, ""),
    ],
)
def test_a_host_whose_work_a_stop_came_before_is_not_done(
    work: Work, known: dict[str, Any], said: str
) -> None:
    asked = MaintenanceRequest(work=work)
    found = decide(scene(HostPhase.CHECKING, state=RunState.STOPPING, request=asked, **known))
    assert found == (End(RunState.STOPPED, said) if said else Enter(HostPhase.DONE))


def test_a_command_in_place_of_the_upgrade() -> None:
    by_command: dict[str, Any] = {"request": MaintenanceRequest(work=Work.COMMAND), **AWAY}
    working = HostPhase.WORKING
    runs, failed = CommandStatus(None, "erases", "noon"), CommandStatus(3, "no")
    cut_off = CommandStatus(-9, "erases", "noon", "was ended after 5 s")
    assert decide(scene(working, **by_command)) == CommandKind.WORK
    # Others have brought it back before the command began: its VMs leave first.
    for state in (RunState.RUNNING, RunState.PAUSED):
        assert decide(scene(working, **by_command | UP, state=state)) == Enter(HostPhase.DRAINING)
    rebooting = scene(working, **by_command | {"status": "reboot"})
    assert decide(rebooting) == Wait("is to be in maintenance for the command")
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


PATIENCE = 60.0
HOSTS = ("h1", "h2", "h3")
DONE, FAILED = IntentState.DONE, IntentState.FAILED


def run_emptied(
    *vms_of_hosts: Sequence[str], phase: HostPhase = HostPhase.DONE, **fields: Any
) -> MaintenanceRun:
    """A run of the first hosts, each with the VMs that it was emptied of."""
    hosts = (
        host_of_run(phase, host=name, name=name, position=at, vms=tuple(vms))
        for at, (name, vms) in enumerate(zip(HOSTS, vms_of_hosts, strict=False))
    )
    return run_of(*hosts, **{"request": MaintenanceRequest(back=Return.ALL), **fields})


class Look(NamedTuple):
    """What is seen of a host: how long after the last time, whether it is being emptied, and who is there."""

    seconds: int
    draining: bool
    there: str


LOOKS = st.lists(
    st.builds(
        Look,
        st.sampled_from([20, 40, 60]),
        st.sampled_from([True] * 7 + [False]),
        st.sampled_from(["a", "b", "ab", ""]),
    ),
    min_size=2,
    max_size=12,
)


@given(LOOKS)
@example([Look(20, True, ""), Look(60, True, "")])
@example([Look(20, True, "a"), Look(60, True, "a"), Look(60, True, "a")])
def test_a_host_is_reported_whose_vms_stay_the_same_for_long(looks: list[Look]) -> None:
    """Not an empty one, and once for the same VMs."""
    notified, now = KeptNotices(), 0.0
    watch = DrainWatch(notified, lambda: now, PATIENCE)
    expected: list[str] = []
    same, same_since, said = "nothing yet", 0.0, ""
    for look in looks:
        now += look.seconds
        status = "preparing_for_maintenance" if look.draining else "up"
        vms = [vm(name, "h1", migratable=False) for name in look.there]
        watch.observe(snapshot(host("h1", status=status), host("h2"), *vms))
        if not look.draining:
            same, said = "nothing yet", ""
        elif look.there != same:
            same, same_since = look.there, now
        elif look.there and now - same_since >= PATIENCE and said != look.there:
            said = look.there
            expected.append("; ".join(f"{name} cannot migrate" for name in look.there))
    assert [notice.facts["reason"] for notice in notified.notices] == expected


@st.composite
def ways(draw: st.DrawFn) -> tuple[tuple[str, str], dict[str, str], dict[tuple[str, str], tuple[int, bool]]]:
    """Whom two hosts were emptied of, where the VMs are now, and how often they failed and came to a host."""
    emptied = draw(st.tuples(*[st.sampled_from(["a", "ab", "b", ""])] * 2))
    now = {name: draw(st.sampled_from(HOSTS)) for name in "ab"}
    tries = {
        (name, target): (draw(st.sampled_from([0, 2, 3])), draw(st.sampled_from([False, False, True])))
        for name in "ab"
        for target in HOSTS
    }
    return emptied, now, tries


@given(ways())
def test_who_goes_home_where_to_and_who_no_more(
    drawn: tuple[tuple[str, str], dict[str, str], dict[tuple[str, str], tuple[int, bool]]],
) -> None:
    """To the first host that it was taken off, once; after three failures on that way it stays."""
    emptied, now, tries = drawn
    migrations = [
        intent(state, 1.0, name, source=source, target=target)
        for (name, target), (failures, arrived) in tries.items()
        for source in [next(one for one in HOSTS if one != target)]
        for state in [FAILED] * failures + [DONE] * arrived
    ]
    world = snapshot(*map(host, HOSTS), *(vm(name, at) for name, at in now.items()))
    home = {name: at for at, vms in reversed([*zip(HOSTS, emptied, strict=False)]) for name in vms}
    going = {name: at for name, at in home.items() if now[name] != at and not tries[name, at][1]}
    returning = returning_vms(run_emptied(*emptied), world, migrations)
    assert returning is not None
    assert {one.vm: one.source for one in returning.moved} == going
    # One that somebody moved since is not where we took it last: it stays.
    went = now | {name: target for (name, target), (_, arrived) in tries.items() if arrived}
    assert {one.vm: one.target for one in returning.moved} == {name: went[name] for name in going}
    assert set(returning.given_up) == {name for name, at in going.items() if tries[name, at][0] >= 3}


@pytest.mark.parametrize("phase", [HostPhase.DONE, HostPhase.WAITING])
def test_another_programs_upgrade_is_left_alone_and_ours_is_shown_after_it(
    phase: HostPhase, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine.from_snapshot(snapshot(host("h1")), clock=START)
    server = serve(engine)
    settings = EngineSettings(url=server.api_url, username="admin@internal")
    run = run_emptied("a", phase=phase)

    def shown() -> tuple[bool, str | None, int]:
        (found,) = engine.queries.state.clusters.values()
        return found.upgrade_mode, found.upgrade_correlation_id, found.upgrade_percent

    with closing(server), EngineConnection(settings, {"OVIRT_PASSWORD": "password"}) as connection:
        flags = UpgradeFlags(connection)
        engine.upgrades.start(CLUSTER, caller=Caller(correlation_id="ansible"))
        for _ in range(2):
            flags.show(run)
        flags.finish(CLUSTER, run.id)
        assert shown() == (True, "ansible", 0)
        assert caplog.messages == []
        engine.upgrades.finish(CLUSTER, caller=Caller(correlation_id="ansible"))
        flags.show(run)
        assert shown() == (True, "maintenance-run", 100 if phase is HostPhase.DONE else 0)
        flags.finish(CLUSTER, run.id)
        assert not shown()[0]
