"""What fails in a cycle of the daemon keeps no cluster waiting that does not fail, and is said once."""

import logging
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from ovirt_enforcer.planners import Call, CallFailed
from ovirt_enforcer.service import process
from ovirt_enforcer.service.process import Service
from ovirt_placement import config
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan
from ovirt_service.daemon import Progress
from ovirt_simulator.http.server import Server
from tests.configuration import write_configuration
from tests.enforcer.service.test_daemon import STATE as STATE
from tests.enforcer.service.test_daemon import Bench, built, last_cycle
from tests.enforcer.stand_ins import PlannersHere


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with built(tmp_path) as found:
        yield found


@pytest.mark.system
def test_a_cluster_that_cannot_even_be_planned_does_not_stop_the_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read = bench.read

    def spoilt() -> Snapshot:
        """A VM without a size, which no part of planning expects."""
        state = read()
        vms = [replace(vm, memory_mb=None) if vm.id == "one-b" else vm for vm in state.vms]
        return replace(state, vms=tuple(vms))

    monkeypatch.setattr(bench, "read", spoilt)
    caplog.set_level(logging.INFO)
    bench.cycles(4)
    assert bench.migrated() == {"two"}
    failures = [record for record in caplog.records if record.exc_info]
    assert len(failures) == 1
    assert failures[0].getMessage().startswith("cluster one: ")

    monkeypatch.setattr(bench, "read", read)
    bench.cycles(10)
    assert bench.migrated() == {"one", "two"}
    assert "cluster one: works again" in caplog.text


@pytest.mark.system
def test_a_cluster_works_again_once_it_is_planned(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is looked at in between, while another plan is made."""

    def fails(planning: Call[Plan]) -> Plan:
        raise CallFailed("no answer within 45 s")

    caplog.set_level(logging.INFO)
    over = cycle([False, True])
    with monkeypatch.context() as patched:
        patched.setattr("tests.enforcer.stand_ins._Made.over", lambda _: next(over))
        patched.setattr("tests.enforcer.stand_ins._Made.result", fails)
        bench.cycles(12)
        assert "cluster one: CallFailed: no answer within 45 s" in caplog.text
        assert "works again" not in caplog.text
        assert last_cycle(bench).error in {
            f"cluster {name}: no answer within 45 s" for name in ("one", "two")
        }
    bench.cycles(12)
    assert last_cycle(bench).error is None
    assert bench.migrated() == {"one", "two"}
    assert [text for text in caplog.messages if "works again" in text] == [
        "cluster one: works again",
        "cluster two: works again",
    ]


@pytest.mark.parametrize("planning", [False, True])
def test_what_runs_in_a_cluster_that_failed_is_followed_once_it_is_planned_again(
    planning: bool, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was left alone until its pause was over, however long the plan takes."""
    bench.cycles()
    followed: list[str] = []
    executor = bench.daemon.parts.executor
    monkeypatch.setattr(executor, "follow", lambda due: followed.extend(one.cluster for one in due))
    work, settings = bench.daemon._clusters["one"], bench.daemon.parts.settings
    work.retry_state.fail(CallFailed("no answer"), bench.daemon.parts.clock(), settings.interval_seconds)
    monkeypatch.setattr(type(work), "planning", planning)
    bench.daemon._follow(bench.store.open_intents())
    assert sorted(followed) == (["one", "two"] if planning else ["two"])


class FailingWatcher:
    """A watcher that fails at each reading."""

    def observe(self, snapshot: Snapshot) -> None:
        raise KeyError("of this watcher")


def test_a_watcher_that_fails_keeps_no_cluster_from_being_repaired(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with built(tmp_path, watchers=[FailingWatcher()]) as bench:
        bench.cycles(3)
        assert bench.migrated() == {"one", "two"}
    assert len([record for record in caplog.records if record.exc_info]) == 1


def test_after_a_failure_it_rests_unless_something_new_is_seen(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asked an engine that was away fifteen times a second, with all of a processor."""
    monkeypatch.setenv("OVIRT_PASSWORD", "password")
    monkeypatch.setattr(process, "PlannerProcesses", PlannersHere)
    loaded = config.load(write_configuration(tmp_path, server.api_url))
    rested: list[float] = []
    with EngineConnection(loaded.engine) as connection:
        service = Service(loaded, connection, Progress(60.0), stopping=lambda: False)
        service._daemon.cycle()
        service._daemon._clusters["cluster1"].retry_state.due = 0.0
        monkeypatch.setattr(
            service._daemon, "read", Mock(side_effect=EngineAway("it is away", request_sent=False))
        )
        assert service._daemon.cycle() > 0.0
        monkeypatch.setattr(process, "wait", lambda ends, seconds: rested.append(seconds) or [])
        monkeypatch.setattr(process.time, "monotonic", lambda: sum(rested))
        assert not service._rest(2.5)
        assert rested == [1.0, 1.0, 0.5]
        service._changes._changed = service._changes._changed._replace(published=True)
        assert not service._rest(2.5)
        assert len(rested) == 3
        monkeypatch.undo()
        service.close()
