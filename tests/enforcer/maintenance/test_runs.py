"""Maintenance runs to their end: the safe order under pause, faults, an engine that is away, and kills.

With commands of the administrator, too: what becomes of the host; none is run twice.
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ovirt_enforcer.log import NoticeKind
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.store.enforcer.maintenance import RunState, Work
from ovirt_simulator.core.backend import MigrationFault, UpgradeFault
from ovirt_simulator.http.control import Disturbance
from tests.builders import APART, CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.enforcer.maintenance.stage import Killed, Killer, Stage, stage
from tests.examples import seeds, some
from tests.simulator.core import engines

#: Deactivated, upgraded: by user without a reason (600 with one), completed with a restart.
_DEACTIVATED, _UPGRADED, _ACTIVATED = 600, 888, 16
LONG = 3600.0

STATE = snapshot(
    *(host(f"h{number}") for number in range(1, 4)),
    vm("a", "h1"),
    vm("b", "h2"),
    group("apart", APART, "a b"),
    vm("c", "h1"),
    vm("d", "h1"),
    group("pair", TOGETHER, "c d"),
)


def upgrade_shown(played: Stage) -> tuple[bool, str | None]:
    cluster = played.engine.snapshot().clusters[0]
    return cluster.upgrade_mode, cluster.upgrade_correlation_id


def assert_well_ended(played: Stage) -> None:
    assert played.run.state is RunState.DONE, (played.run.message, played.phases)
    assert played.phases == ["done", "done"]
    assert played.all_up
    assert played.engine.snapshot().draining_hosts == ()
    assert not any(one.draining for one in played.run.hosts)
    assert (played.violated, played.most_away) == (set(), 1)
    assert upgrade_shown(played) == (False, "maintenance-run")
    for name in ("h1", "h2"):
        codes = Counter(played.codes(name))
        assert (codes[_DEACTIVATED], codes[_UPGRADED]) == (1, 1), codes


@pytest.mark.system
def test_one_after_the_other_and_no_rule_is_violated_on_the_way(tmp_path: Path) -> None:
    with stage(tmp_path, STATE) as played:
        played.began().play(LONG)
        assert_well_ended(played)
        assert engines.codes(played.engine).count(67) == 0, "the engine had nothing to drain"


@pytest.mark.system
def test_two_hosts_take_each_others_vms_in_turn(tmp_path: Path) -> None:
    """What leaves a host for its maintenance may go back there at once for that of the other one."""
    with stage(tmp_path, snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h2"))) as played:
        played.began().play(LONG)
        assert_well_ended(played)
        assert played.now < EnforcerSettings().circle_seconds


@pytest.mark.system
def test_it_is_shown_as_an_upgrade_with_how_far_it_is(tmp_path: Path) -> None:
    with stage(tmp_path, STATE) as played:
        played.began().play(LONG, reached=lambda: played.phases[0] == "working")
        assert upgrade_shown(played) == (True, "maintenance-run")
        played.engine.upgrades.finish(CLUSTER)  # as after a restart of the engine
        played.play(LONG, reached=lambda: played.phases[1] == "working")
        assert played.engine.queries.state.clusters[CLUSTER].upgrade_percent == 50
        played.play(LONG)
        assert_well_ended(played)


@pytest.mark.system
def test_a_run_that_fails_is_shown_no_more_and_one_that_cannot_be_shown_goes_on(tmp_path: Path) -> None:
    with stage(tmp_path, STATE, {"maintenance": {"return_seconds": 300}}) as played:
        played.server.disturbances.add(Disturbance(path="clusters/.*/upgrade", status=500, times=None))
        played.began().play(LONG, reached=lambda: played.phases[1] == "draining")
        assert upgrade_shown(played) == (False, None)
        played.server.disturbances.clear()
        played.engine.faults.expect(UpgradeFault(stay_away=True), identity="h2")
        played.play(LONG, reached=lambda: played.phases[1] == "working")
        assert upgrade_shown(played) == (True, "maintenance-run")
        played.play(LONG)
        assert played.run.state is RunState.FAILED
        assert "host h2: it does not come back" in played.run.message
        assert played.phases == ["done", "working"]
        assert not upgrade_shown(played)[0]


@pytest.mark.system
def test_a_pause_in_the_middle_holds_it_and_it_goes_on(tmp_path: Path) -> None:
    with stage(tmp_path, STATE) as played:
        played.began()
        held: list[list[str]] = []
        played.happenings += [
            *((25.0, played.pause), (400.0, lambda: held.append(played.phases)), (401.0, played.resume))
        ]
        played.play(LONG)
        assert held[0][1] == "waiting"
        assert held[0][0] != "done"
        assert_well_ended(played)


def engine_is_away(played: Stage) -> None:
    away = Disturbance(status=503, times=None)
    played.happenings += [
        (30.0, lambda: played.server.disturbances.add(away)),
        (200.0, played.server.disturbances.clear),
    ]


def migrations_fail(played: Stage) -> None:
    played.engine.faults.expect(MigrationFault(fail=True), count=3)


def answers_are_lost(played: Stage) -> None:
    for path in ("/deactivate", "/upgrade", "/activate"):
        played.server.disturbances.add(Disturbance(method="POST", path=path, drop="answer"))


@pytest.mark.system
@pytest.mark.parametrize(
    "fails", [engine_is_away, migrations_fail, answers_are_lost], ids=lambda one: one.__name__
)
def test_what_fails_on_the_way_is_done_once_all_the_same(
    fails: Callable[[Stage], None], tmp_path: Path
) -> None:
    with stage(tmp_path, STATE) as played:
        fails(played.began())
        played.play(LONG)
        assert_well_ended(played)
        assert played.codes("h1").count(_ACTIVATED) == 1


@pytest.mark.system
def test_a_host_that_somebody_deactivates_meanwhile_goes_on_from_there(tmp_path: Path) -> None:
    with stage(tmp_path, STATE) as played:
        played.began()
        played.happenings.append((4.0, lambda: played.engine.hosts.deactivate("h1")))
        played.play(LONG)
        assert played.run.state is RunState.DONE
        assert played.all_up


@pytest.mark.system
def test_a_host_that_somebody_activates_before_its_upgrade_is_upgraded_all_the_same(tmp_path: Path) -> None:
    with stage(tmp_path, STATE) as played:
        played.began().play(LONG, reached=lambda: played.phases[0] == "working")
        played.engine.hosts.activate("h1")
        played.play(LONG)
        assert (played.run.state, played.phases, played.all_up) == (RunState.DONE, ["done", "done"], True)
        assert [played.codes(name).count(_UPGRADED) for name in ("h1", "h2")] == [1, 1]


#: A thread of a dead process ends as well, and pytest reports that.
dies = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


def killed_and_started_again(folder: Path, state: Snapshot, fatal: list[int]) -> Stage:
    """A run whose enforcer is killed at each of these points, counted again after each, and started again."""
    with stage(folder, state) as played:
        played.began()
        for point in fatal:
            killer = Killer(point)
            try:
                played.play(LONG, killer)
            except Killed:
                continue
            assert not killer.dead
        played.play(LONG)
        played.look()  # one that was killed at the very end leaves the flag of the upgrade to the next
        return played


def points_of(folder: Path) -> list[str]:
    """What an undisturbed run passes."""
    with stage(folder, STATE) as played:
        played.began()
        killer = Killer()
        played.play(LONG, killer)
        return killer.passed


#: This many parts are tested side by side, each at points of its own.
PARTS = 4


@pytest.mark.system
@dies
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.nightly) for part in range(1, PARTS + 1))]
)
def test_killed_at_any_point_it_goes_on(part: int, tmp_path: Path) -> None:
    """In part 0 at few requests, in the others at some commits of writes and around some requests."""
    (tmp_path / "undisturbed").mkdir()
    points = points_of(tmp_path / "undisturbed")
    decisive = [number for number, point in enumerate(points, 1) if "POST" in point]
    chosen = decisive[::48] if part == 0 else some(range(part, len(points) + 1, PARTS))
    for fatal in chosen:
        folder = tmp_path / str(fatal)
        folder.mkdir()
        played = killed_and_started_again(folder, STATE, [fatal])
        try:
            assert_well_ended(played)
        except AssertionError as error:
            raise AssertionError(f"killed {points[fatal - 1]}, point {fatal}: {error}") from error


@dies
@pytest.mark.nightly
@pytest.mark.parametrize("seed", seeds(50))
def test_killed_ten_times_at_random_it_goes_on(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    played = killed_and_started_again(tmp_path, STATE, [dice.randint(1, 8) for _ in range(10)])
    assert_well_ended(played)


def starts(log: Path) -> Counter[str]:
    """How often the command was run, by host."""
    return Counter(log.read_text().split() if log.exists() else ())


def logged(log: Path, more: str = "", **settings: Any) -> dict[str, Any]:
    """A command that writes down for which host it is run, and does more."""
    return {"maintenance": {"command": f"sh -c 'echo $MAINTENANCE_HOST | tee -a {log}; {more}'", **settings}}


@pytest.mark.system
@pytest.mark.parametrize(
    ("failures", "state", "phases"),
    [(0, RunState.FAILED, ["failed", "waiting"]), (1, RunState.DONE, ["failed", "done"])],
    ids=["and ends the run", "and the run goes on where a host may fail"],
)
def test_a_command_that_overruns_leaves_its_host_up(
    failures: int, state: RunState, phases: list[str], tmp_path: Path
) -> None:
    log, more = tmp_path / "done", 'test "$MAINTENANCE_HOST" = h2 || sleep 3600'
    with stage(tmp_path, STATE, logged(log, more, command_seconds=1.0)) as played:
        played.request("h1", "h2", work=Work.COMMAND, failures=failures)
        played.play(100 * LONG)
        assert (played.run.state, played.phases) == (state, phases)
        assert "was ended after 1 s: h1" in played.run.hosts[0].message
        assert played.all_up
        assert not played.run.hosts[0].draining
        failed = [one.facts["reason"] for one in played.notices if one.kind is NoticeKind.MAINTENANCE_FAILED]
        assert ["was ended after 1 s" in reason for reason in failed] == [True] * (1 - failures)
    assert starts(log) == Counter({"h1": 1, "h2": failures})


@pytest.mark.system
def test_a_stop_ends_the_command_and_activates_the_host(tmp_path: Path) -> None:
    log = tmp_path / "done"
    with stage(tmp_path, STATE, logged(log, "sleep 3600")) as played:
        played.request("h1", "h2", work=Work.COMMAND)

        def stop_once_it_runs() -> bool:
            if played.run.state is RunState.RUNNING and starts(log):
                played.runs.order("run", "stop", set_by="ada")
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
        played.pause()
        played.play(played.now + 300.0)
        assert not starts(log)
        played.resume()
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
