"""Between two hosts of a run, and at its end: what is looked at, and which VMs go back to their hosts."""

import logging
from pathlib import Path
from typing import Any

import pytest

from ovirt_enforcer.log import NoticeKind
from ovirt_placement.model import Snapshot
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.store.enforcer.leader import HaAnnouncementStore
from ovirt_placement.store.enforcer.maintenance import HostPhase, RunState, Work
from ovirt_simulator.core.backend import MigrationFault
from tests.builders import APART, CLUSTER, SOFT_TOGETHER, TOGETHER, group, host, snapshot, vm
from tests.enforcer.maintenance.stage import Killed, Killer, Stage, stage
from tests.stored import listening

LONG = 7200.0
HOMES = {"a": "h1", "b": "h2", "c": "h1", "d": "h1", "e": "h2"}
HOSTS = tuple(host(f"h{number}") for number in range(1, 4))
STATE = snapshot(
    *HOSTS,
    *(vm(name, on) for name, on in HOMES.items()),
    group("apart", APART, "a b"),
    group("pair", TOGETHER, "c d"),
    # Nobody repairs it: the settings say hard rules alone.
    group("near", vms="e", hosts_rule=SOFT_TOGETHER, hosts="h2"),
)


def where(played: Stage) -> dict[str, str | None]:
    return {one.id: one.host for one in played.engine.snapshot().vms}


def play_until_they_go_back(played: Stage) -> None:
    played.began(back=Return.ALL).play(LONG, reached=lambda: played.phases == ["done", "done"])
    assert played.run.active


@pytest.mark.system
@pytest.mark.parametrize("back", list(Return))
def test_as_many_go_back_as_were_asked_for(back: Return, tmp_path: Path) -> None:
    with stage(tmp_path, STATE) as played:
        played.began(back=back).play(LONG)
        assert played.run.state is RunState.DONE
        assert (played.run.message, played.violated) == ("2 done", set())
        away = {name for name, host in where(played).items() if host != HOMES[name]}
    if back is Return.ALL:
        assert away == set()
    else:
        assert {"a", "b"} & away, "the hosts were emptied"
        assert ("e" in away) is (back is Return.NONE)


@pytest.mark.system
def test_a_way_back_that_fails_fails_no_run_and_is_named(tmp_path: Path) -> None:
    with stage(tmp_path, STATE) as played:
        play_until_they_go_back(played)
        name, *others = (name for name, host in where(played).items() if host != HOMES[name])
        played.engine.faults.expect(MigrationFault(fail=True), count=50, identity=name)
        played.play(LONG)
        assert played.run.state is RunState.DONE
        why = "its migration back has failed 3 times"
        assert played.run.message == f"2 done; not back on their hosts: {name} ({why})"
        assert all(where(played)[other] == HOMES[other] for other in others)


@pytest.mark.system
def test_a_stop_ends_the_way_back_and_a_pause_holds_it(tmp_path: Path) -> None:
    with stage(tmp_path, STATE) as played:
        play_until_they_go_back(played)
        played.runs.order("run", "pause", set_by="eve")
        played.play(played.now + 60.0)
        held = where(played)
        played.play(played.now + 200.0)
        assert where(played) == held
        assert played.run.message == "the run is paused"
        played.runs.order("run", "stop", set_by="eve")
        played.play(LONG)
        assert played.run.state is RunState.STOPPED
        assert where(played) == held


@pytest.mark.system
@pytest.mark.parametrize("point", [1, 3, 5])
def test_killed_on_the_way_back_it_goes_on(point: int, tmp_path: Path) -> None:
    with stage(tmp_path, STATE) as played:
        play_until_they_go_back(played)
        with pytest.raises(Killed):
            played.play(LONG, Killer(point))
        played.play(LONG)
        assert played.run.state is RunState.DONE
        assert where(played) == HOMES
        assert played.violated == set()


@pytest.mark.system
def test_what_a_repair_takes_away_again_is_not_brought_back_for_ever(tmp_path: Path) -> None:
    """Soft rules are repaired, too, and one of them wants a VM off the host that it came from."""
    state: Snapshot = snapshot(
        *HOSTS,
        vm("a", "h1"),
        vm("b", "h1"),
        group("elsewhere", vms="a", hosts_rule=SOFT_TOGETHER, hosts="h3"),
    )
    with stage(tmp_path, state, {"repair": ["hard", "soft"]}) as played:
        played.offer_updates("h1")
        played.request("h1", back=Return.ALL)
        played.play(LONG)
        assert played.run.state is RunState.DONE
        assert where(played)["b"] == "h1"
        moves = [one.target for one in played.migrations if one.vm == "a"]
    assert moves.count("h1") == 1


SETTINGS = {"maintenance": {"return_seconds": 300}}
QUIET = snapshot(*HOSTS, vm("a", "h1"), vm("b", "h2"))
_DEACTIVATED = 600


def played_to_the_check(played: Stage) -> Stage:
    """The first host is up again, and looked at."""
    played.began().play(LONG, reached=lambda: played.phases[0] == "checking")
    return played


def announce(played: Stage, number: int, kind: NoticeKind) -> None:
    """As the enforcer's monitor does that finds a reservation violated, or satisfied again."""
    store = HaAnnouncementStore(played.config.store.url, engine=played.config.engine.name)
    store.announce(number=number, cluster=CLUSTER, kind=kind, facts={}, settles=False)
    store.close()


@pytest.mark.system
def test_a_violated_reservation_after_a_host_is_up_ends_the_run_with_an_alert(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with stage(tmp_path, QUIET, SETTINGS) as played:
        announce(played_to_the_check(played), 1, NoticeKind.HA_ALERT)
        with caplog.at_level(logging.WARNING):
            played.play(LONG)
        assert played.run.state is RunState.FAILED
        assert "host h1: it is up, and not as it was: " in played.run.message
        assert "the HA reservation of the cluster is not satisfied" in played.run.message
        assert (played.phases[1], played.codes("h2").count(_DEACTIVATED)) == ("waiting", 0)
        assert not any(one.draining for one in played.run.hosts)
    assert [one.kind for one in played.notices] == [NoticeKind.MAINTENANCE_FAILED]
    assert any("maintenance run run" in text and "failed" in text for text in caplog.messages)


@pytest.mark.system
def test_a_reservation_that_is_satisfied_again_in_time_lets_it_go_on(tmp_path: Path) -> None:
    with stage(tmp_path, QUIET, SETTINGS) as played:
        announce(played_to_the_check(played), 1, NoticeKind.HA_ALERT)
        played.happenings.append((played.now + 100, lambda: announce(played, 2, NoticeKind.HA_ALL_CLEAR)))
        played.play(LONG)
        assert played.run.state is RunState.DONE


@pytest.mark.system
def test_a_rule_that_somebody_violates_while_it_soaks_ends_the_run(tmp_path: Path) -> None:
    """Nobody repairs it: the VM that would have to move is pinned."""
    state = snapshot(
        *HOSTS, vm("a", "h3", migratable=False), vm("b", "h3", migratable=False), group("apart", APART, "")
    )
    with stage(tmp_path, state, SETTINGS) as played:
        played_to_the_check(played)
        for one in ("a", "b"):
            played.engine.affinity_groups.add_member("apart", "vms", one)
        played.play(LONG)
        assert played.run.state is RunState.FAILED
        assert (
            "it is up, and not as it was: violated since the run began: affinity group apart"
            in played.run.message
        )
        assert played.phases[1] == "waiting"


def test_a_run_that_is_requested_between_two_readings_of_one_cycle_is_begun(tmp_path: Path) -> None:
    seen: list[str] = []

    def request(_connection: Any, _cursor: Any, statement: str, *_: object) -> None:
        """After the runs were read for the first time in a cycle, and before what is read next."""
        if statement.startswith("SELECT maintenance_runs."):
            seen.append("runs")
        elif seen == ["runs"]:
            seen.append("requested")
            played.request("h1", work=Work.NOTHING)

    with stage(tmp_path, QUIET) as played, played.enforcing() as daemon:
        daemon.cycle()
        played.now = 100.0  # the cluster is due
        with listening(before_cursor_execute=request):
            daemon.cycle()
        assert seen[:2] == ["runs", "requested"]
        assert seen.count("runs") > 1, "that cycle has looked at the engine, and at the runs once more"
        daemon.cycle()
        assert played.run.hosts[0].phase is not HostPhase.WAITING
