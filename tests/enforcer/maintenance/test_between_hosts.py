"""What is looked at between two hosts: the soak time, the HA reservation, and rules."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ovirt_enforcer.notifications.kinds import NoticeKind
from ovirt_placement.store.enforcer.leader import HaAnnouncementStore
from ovirt_placement.store.enforcer.maintenance import RunState
from ovirt_simulator.core.commands.groups import Members
from tests.builders import APART, CLUSTER, group, host, snapshot, vm
from tests.enforcer.maintenance.stage import Stage, stage

pytestmark = pytest.mark.system

LONG = 7200.0
SETTINGS = {"maintenance": {"return_seconds": 300}}
STATE = snapshot(*(host(f"h{number}") for number in range(1, 4)), vm("a", "h1"), vm("b", "h2"))
_DEACTIVATED = 600


def phase(played: Stage, place: int = 0) -> str:
    return str(played.run.hosts[place].phase)


def played_to_the_check(played: Stage, soak_seconds: float = 5.0) -> Stage:
    """The first host is up again, and looked at."""
    played.offer_updates("h1", "h2")
    played.request("h1", "h2", soak_seconds=soak_seconds)
    played.play(LONG, reached=lambda: phase(played) == "checking")
    return played


def announce(played: Stage, number: int, kind: NoticeKind) -> None:
    """As the enforcer's monitor does that finds a reservation violated, or satisfied again."""
    store = HaAnnouncementStore(played.config.store.url, engine=played.config.engine.name)
    store.announce(number=number, cluster=CLUSTER, kind=kind, facts={}, settles=False)
    store.close()


def test_the_next_host_waits_for_the_soak_time(tmp_path: Path) -> None:
    with stage(tmp_path, STATE, SETTINGS) as played:
        began = played_to_the_check(played, soak_seconds=240.0).now
        played.play(LONG, reached=lambda: phase(played, 1) != "waiting")
        assert 240.0 <= played.now - began < 300.0
        assert played.run.hosts[0].phase == "done"


def test_a_violated_reservation_after_a_host_is_up_ends_the_run_with_an_alert(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with stage(tmp_path, STATE, SETTINGS) as played:
        announce(played_to_the_check(played), 1, NoticeKind.HA_ALERT)
        with caplog.at_level(logging.WARNING):
            played.play(LONG)
        assert played.run.state is RunState.FAILED
        assert "host h1: it is up, and not as it was: " in played.run.message
        assert "the HA reservation of the cluster is not satisfied" in played.run.message
        assert (phase(played, 1), played.codes("h2").count(_DEACTIVATED)) == ("waiting", 0)
        assert not any(one.draining for one in played.run.hosts)
    assert [one.kind for one in played.notices] == [NoticeKind.MAINTENANCE_FAILED]
    assert any("maintenance run run" in text and "failed" in text for text in caplog.messages)


def test_a_reservation_that_is_satisfied_again_in_time_lets_it_go_on(tmp_path: Path) -> None:
    with stage(tmp_path, STATE, SETTINGS) as played:
        announce(played_to_the_check(played), 1, NoticeKind.HA_ALERT)
        played.happenings.append((played.now + 100, lambda: announce(played, 2, NoticeKind.HA_ALL_CLEAR)))
        played.play(LONG)
        assert played.run.state is RunState.DONE


def test_a_rule_that_somebody_violates_while_it_soaks_ends_the_run(tmp_path: Path) -> None:
    """Nobody repairs it: the VM that would have to move is pinned."""
    state = snapshot(
        *(host(f"h{number}") for number in range(1, 4)),
        vm("a", "h3", migratable=False),
        vm("b", "h3", migratable=False),
        group("apart", APART, ""),
    )
    with stage(tmp_path, state, SETTINGS) as played:
        played_to_the_check(played)
        for one in ("a", "b"):
            played.engine.affinity_groups.add_member("apart", Members.VMS, one)
        played.play(LONG)
        assert played.run.state is RunState.FAILED
        assert (
            "it is up, and not as it was: violated since the run began: affinity group apart"
            in played.run.message
        )
        assert phase(played, 1) == "waiting"
