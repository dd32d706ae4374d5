"""`maintenance run --return`: VMs go back to their hosts in the end, and no run fails because some do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.model import Snapshot
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.store.enforcer.maintenance import RunState
from ovirt_simulator.core.settings import MigrationFault
from tests.builders import APART, SOFT_TOGETHER, TOGETHER, group, host, snapshot, vm
from tests.enforcer.maintenance.stage import Killed, Killer, Stage, stage

LONG = 7200.0
HOMES = {"a": "h1", "b": "h2", "c": "h1", "d": "h1", "e": "h2"}
STATE = snapshot(
    *(host(f"h{number}") for number in range(1, 4)),
    *(vm(name, on) for name, on in HOMES.items()),
    group("apart", APART, "a b"),
    group("pair", TOGETHER, "c d"),
    # Nobody repairs it: the settings say hard rules alone.
    group("near", vms="e", hosts_rule=SOFT_TOGETHER, hosts="h2"),
)


def where(played: Stage) -> dict[str, str | None]:
    return {one.id: one.host for one in played.engine.snapshot().vms}


def began(played: Stage, back: Return, **request: Any) -> Stage:
    played.offer_updates("h1", "h2")
    played.request("h1", "h2", back=back, **request)
    return played


def play_until_they_go_back(played: Stage) -> None:
    played.play(LONG, reached=lambda: all(one.phase == "done" for one in played.run.hosts))
    assert played.run.active


@pytest.mark.system
@pytest.mark.parametrize("back", list(Return))
def test_as_many_go_back_as_were_asked_for(back: Return, tmp_path: Path) -> None:
    with stage(tmp_path, STATE) as played:
        began(played, back).play(LONG)
        assert played.run.state is RunState.DONE
        assert played.run.message == "2 done"
        assert played.violated == set()
        away = {name for name, host in where(played).items() if host != HOMES[name]}
    if back is Return.ALL:
        assert away == set()
    else:
        assert {"a", "b"} & away, "the hosts were emptied"
        assert ("e" in away) is (back is Return.NONE)


@pytest.mark.system
def test_a_way_back_that_fails_fails_no_run_and_is_named(tmp_path: Path) -> None:
    with stage(tmp_path, STATE) as played:
        began(played, Return.ALL)
        play_until_they_go_back(played)
        name, *others = (name for name, host in where(played).items() if host != HOMES[name])
        played.engine.faults.next_migrations(MigrationFault(fail=True), count=50, vm_id=name)
        played.play(LONG)
        assert played.run.state is RunState.DONE
        why = "its migration back has failed 3 times"
        assert played.run.message == f"2 done; not back on their hosts: {name} ({why})"
        assert all(where(played)[other] == HOMES[other] for other in others)


@pytest.mark.system
def test_a_host_that_is_down_in_the_end_keeps_them_away(tmp_path: Path) -> None:
    with stage(tmp_path, STATE) as played:
        began(played, Return.ALL)
        play_until_they_go_back(played)
        (home,) = {HOMES[name] for name, host in where(played).items() if name in "ac" and host != "h1"}
        played.engine.hosts.deactivate(home)
        played.play(LONG)
        assert played.run.state is RunState.DONE
        assert "not back on their hosts" in played.run.message
        assert played.violated == set()


@pytest.mark.system
def test_what_somebody_moves_meanwhile_stays_there(tmp_path: Path) -> None:
    with stage(tmp_path, STATE) as played:
        began(played, Return.ALL)
        play_until_they_go_back(played)
        away = [name for name in "ae" if where(played)[name] != HOMES[name]]
        name, *_ = away
        (other,) = {"h1", "h2", "h3"} - {HOMES[name], where(played)[name]}
        played.engine.vms.migrate(name, host_id=other)
        played.play(LONG)
        assert played.run.state is RunState.DONE
        assert where(played)[name] == other
        assert f"{name} (it was moved meanwhile" in played.run.message


@pytest.mark.system
def test_a_stop_ends_the_way_back_and_a_pause_holds_it(tmp_path: Path) -> None:
    with stage(tmp_path, STATE) as played:
        began(played, Return.ALL)
        play_until_they_go_back(played)
        played.store.order("run", RunState.PAUSED, after=(RunState.RUNNING,), set_by="eve")
        played.play(played.now + 60.0)
        held = where(played)
        played.play(played.now + 200.0)
        assert where(played) == held
        assert played.run.message == "the run is paused"
        played.store.order("run", RunState.STOPPING, after=(RunState.PAUSED,), set_by="eve")
        played.play(LONG)
        assert played.run.state is RunState.STOPPED
        assert where(played) == held


@pytest.mark.system
@pytest.mark.parametrize("point", [1, 3, 5])
def test_killed_on_the_way_back_it_goes_on(point: int, tmp_path: Path) -> None:
    with stage(tmp_path, STATE) as played:
        began(played, Return.ALL)
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
        *(host(f"h{number}") for number in range(1, 4)),
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
