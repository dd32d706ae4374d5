"""Maintenance runs with commands of the administrator: what becomes of the host; none is run twice."""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ovirt_enforcer.maintenance.decision import way_home
from ovirt_enforcer.maintenance.runs import UpgradeFlags
from ovirt_enforcer.notices import NoticeKind
from ovirt_enforcer.watchers.engine_watch import DrainWatch
from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.store.enforcer.intents import IntentState
from ovirt_placement.store.enforcer.maintenance import (
    HostPhase,
    MaintenanceRequest,
    MaintenanceRun,
    RunState,
    Work,
)
from ovirt_placement.store.orders import ALL_CLUSTERS, PauseStore
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Caller
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import serve
from tests.builders import CLUSTER, host, snapshot, vm
from tests.enforcer.gates.judging import intent
from tests.enforcer.maintenance.stage import Killed, Killer, host_of_run, stage
from tests.enforcer.maintenance.test_runs import LONG, STATE, dies
from tests.kit.notices import KeptNotices
from tests.scenarios.stage import START
from tests.stored import run_of


def starts(log: Path) -> Counter[str]:
    """How often the command was run, by host."""
    return Counter(log.read_text().split() if log.exists() else ())


def logged(log: Path, more: str = "", **settings: Any) -> dict[str, Any]:
    """A command that writes down for which host it is run, and does more."""
    return {"maintenance": {"command": f"sh -c 'echo $MAINTENANCE_HOST | tee -a {log}; {more}'", **settings}}


@pytest.mark.system
def test_a_command_that_overruns_leaves_its_host_up_and_a_notice(tmp_path: Path) -> None:
    log = tmp_path / "done"
    with stage(tmp_path, STATE, logged(log, "sleep 3600", command_seconds=0.5)) as played:
        played.request("h1", "h2", work=Work.COMMAND)
        played.play(100 * LONG)
        assert played.run.state is RunState.FAILED
        assert played.phases == ["failed", "waiting"]
        assert "was ended after 0.5 s: h1" in played.run.message
        assert played.all_up
        failed = [one for one in played.notices if one.kind is NoticeKind.MAINTENANCE_FAILED]
        assert ["was ended after 0.5 s" in one.facts["reason"] for one in failed] == [True]
        assert not played.run.hosts[0].draining
    assert starts(log) == {"h1": 1}


@pytest.mark.system
def test_a_run_goes_on_where_a_host_may_fail(tmp_path: Path) -> None:
    log = tmp_path / "done"
    more = 'test "$MAINTENANCE_HOST" = h2 || sleep 3600'
    settings = logged(log, more, command_seconds=1.0)
    with stage(tmp_path, STATE, settings) as played:
        played.request("h1", "h2", work=Work.COMMAND, failures=1)
        played.play(100 * LONG)
        assert played.phases == ["failed", "done"]
        assert played.run.state is RunState.DONE
        assert played.all_up
    assert starts(log) == {"h1": 1, "h2": 1}


@pytest.mark.system
def test_a_stop_ends_the_command_and_activates_the_host(tmp_path: Path) -> None:
    log = tmp_path / "done"
    with stage(tmp_path, STATE, logged(log, "sleep 3600")) as played:
        played.request("h1", "h2", work=Work.COMMAND)

        def stop_once_it_runs() -> bool:
            if played.run.state is RunState.RUNNING and starts(log):
                played.store.order("run", "stop", set_by="ada")
            return False

        played.play(100 * LONG, reached=stop_once_it_runs)
        assert played.run.state is RunState.STOPPED
        assert "the command was stopped" in played.run.message
        assert played.all_up
        assert not [one for one in played.notices if one.kind is NoticeKind.MAINTENANCE_FAILED]
    assert starts(log) == {"h1": 1}


@pytest.mark.system
def test_a_slow_check_is_run_once_and_named_and_lets_the_run_begin(tmp_path: Path) -> None:
    log, go = tmp_path / "checks", tmp_path / "go"
    check = f"sh -c 'echo $MAINTENANCE_HOST >> {log}; echo counting; until test -e {go}; do sleep 0.05; done'"
    with stage(tmp_path, STATE, {"maintenance": {"blocked_by": check}}) as played:
        played.request("h1", work=Work.NOTHING)
        waited: set[str] = set()

        def let_it_end_after_some_looks() -> bool:
            waited.update(() if played.run.hosts[0].message == "" else [played.run.hosts[0].message])
            if starts(log) and played.now > 300.0:
                go.touch()
            return False

        played.play(100 * LONG, reached=let_it_end_after_some_looks)
        assert played.run.state is RunState.DONE
        assert any(one.startswith("blocked_by runs since 20") and one.endswith("counting") for one in waited)
    assert starts(log) == {"h1": 1}


@pytest.mark.system
def test_a_command_that_prints_much_goes_on_while_the_engine_is_away(tmp_path: Path) -> None:
    log, printed = tmp_path / "done", tmp_path / "printed"
    with stage(tmp_path, STATE, logged(log, f"head -c 4000000 /dev/zero; touch {printed}")) as played:
        played.request("h1", work=Work.COMMAND)

        def no_engine_once_it_runs() -> bool:
            if starts(log) and not played.server.disturbances.waiting:
                played.server.disturbances.add(Disturbance(status=503, times=None))
            time.sleep(0.01)  # the command takes real time
            return printed.exists()

        played.play(100 * LONG, reached=no_engine_once_it_runs)
        assert printed.exists()


@pytest.mark.system
def test_no_command_begins_while_all_is_paused(tmp_path: Path) -> None:
    log = tmp_path / "done"
    with stage(tmp_path, STATE, logged(log)) as played:
        played.request("h1", work=Work.COMMAND)
        played.play(LONG, reached=lambda: str(played.run.hosts[0].phase) == "working")
        pauses = PauseStore(played.config.store.url, engine=played.config.engine.name)
        pauses.pause(ALL_CLUSTERS, cluster_name="", reason="no", set_by="ada", seconds=None)
        played.play(played.now + 300.0)
        assert not starts(log)
        pauses.resume(ALL_CLUSTERS, set_by="ada")
        pauses.close()
        played.play(100 * LONG)
        assert played.run.state is RunState.DONE
    assert starts(log) == {"h1": 1}


@dies
@pytest.mark.system
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.nightly) for part in range(1, 5))]
)
def test_killed_at_any_point_no_command_is_run_twice(part: int, tmp_path: Path) -> None:
    undisturbed = Killer()
    folder = tmp_path / "undisturbed"
    folder.mkdir()
    with stage(folder, STATE, logged(folder / "done")) as played:
        played.request("h1", "h2", work=Work.COMMAND, failures=2)
        played.play(100 * LONG, undisturbed)
    about = [number for number, what in enumerate(undisturbed.passed, 1) if "intents" in what]
    for fatal in about[::9] if part == 0 else range(part, len(undisturbed.passed) + 1, 4):
        folder = tmp_path / str(fatal)
        folder.mkdir()
        log = folder / "done"
        with stage(folder, STATE, logged(log)) as played:
            played.request("h1", "h2", work=Work.COMMAND, failures=2)
            try:
                played.play(100 * LONG, Killer(fatal))
            except Killed:
                played.play(100 * LONG)
            story = fatal, undisturbed.passed[fatal - 1], played.run.message
            assert max(starts(log).values(), default=0) <= 1, story
            assert played.run.state is RunState.DONE, story
            assert played.all_up, story


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
    way = way_home(run_emptied(*emptied), world, migrations)
    assert way is not None
    assert {one.vm: one.source for one in way.moved} == going
    assert set(way.given_up) == {name for name, at in going.items() if tries[name, at][0] >= 3}


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
