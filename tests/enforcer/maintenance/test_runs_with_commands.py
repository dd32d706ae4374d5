"""Maintenance runs with commands of the administrator: what becomes of the host; none is run twice."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ovirt_enforcer.notifications.kinds import NoticeKind
from ovirt_placement.store.enforcer.maintenance import RunState, Work
from ovirt_placement.store.orders import ALL_CLUSTERS, PauseStore
from ovirt_simulator.http.control import Disturbance
from tests.enforcer.maintenance.stage import Killed, Killer, Stage, stage
from tests.enforcer.maintenance.test_runs import LONG, STATE, dies, phases

pytestmark = pytest.mark.system


def starts(log: Path) -> Counter[str]:
    """How often the command was run, by host."""
    return Counter(log.read_text().split() if log.exists() else ())


def logged(log: Path, more: str = "", **settings: Any) -> dict[str, Any]:
    """A command that writes down for which host it is run, and does more."""
    return {"maintenance": {"command": f"sh -c 'echo $MAINTENANCE_HOST | tee -a {log}; {more}'", **settings}}


def all_up(played: Stage) -> bool:
    return all(one.status == "up" for one in played.engine.snapshot().hosts)


def test_the_work_may_be_a_command(tmp_path: Path) -> None:
    log = tmp_path / "done"
    with stage(tmp_path, STATE, logged(log)) as played:
        played.request("h1", "h2", work=Work.COMMAND)
        played.play(LONG)
        assert played.run.state is RunState.DONE
    assert log.read_text().split() == ["h1", "h2"]


def test_a_command_that_overruns_leaves_its_host_up_and_a_notice(tmp_path: Path) -> None:
    log = tmp_path / "done"
    with stage(tmp_path, STATE, logged(log, "sleep 3600", command_seconds=0.5)) as played:
        played.request("h1", "h2", work=Work.COMMAND)
        played.play(100 * LONG)
        assert played.run.state is RunState.FAILED
        assert phases(played) == ["failed", "waiting"]
        assert "was ended after 0.5 s: h1" in played.run.message
        assert all_up(played)
        failed = [one for one in played.notices if one.kind is NoticeKind.MAINTENANCE_FAILED]
        assert ["was ended after 0.5 s" in one.facts["reason"] for one in failed] == [True]
        assert not played.run.hosts[0].draining
    assert starts(log) == {"h1": 1}


def test_a_run_goes_on_where_a_host_may_fail(tmp_path: Path) -> None:
    log = tmp_path / "done"
    more = 'test "$MAINTENANCE_HOST" = h2 || sleep 3600'
    settings = logged(log, more, command_seconds=1.0)
    with stage(tmp_path, STATE, settings) as played:
        played.request("h1", "h2", work=Work.COMMAND, failures=1)
        played.play(100 * LONG)
        assert phases(played) == ["failed", "done"]
        assert played.run.state is RunState.DONE
        assert all_up(played)
    assert starts(log) == {"h1": 1, "h2": 1}


def test_a_stop_ends_the_command_and_activates_the_host(tmp_path: Path) -> None:
    log = tmp_path / "done"
    with stage(tmp_path, STATE, logged(log, "sleep 3600")) as played:
        played.request("h1", "h2", work=Work.COMMAND)

        def stop_once_it_runs() -> bool:
            if played.run.state is RunState.RUNNING and starts(log):
                played.store.order("run", RunState.STOPPING, after=[RunState.RUNNING], set_by="ada")
            return False

        played.play(100 * LONG, reached=stop_once_it_runs)
        assert played.run.state is RunState.STOPPED
        assert "the command was stopped" in played.run.message
        assert all_up(played)
        assert not [one for one in played.notices if one.kind is NoticeKind.MAINTENANCE_FAILED]
    assert starts(log) == {"h1": 1}


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
            assert all_up(played), story
