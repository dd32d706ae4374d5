"""What a step was decided on has an age, which is looked at again right before each request is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ovirt_enforcer.actions.migrate_vm.executor import Stale
from ovirt_enforcer.gates.admission import Admitted, Gates
from ovirt_enforcer.service.freshness import Freshness
from ovirt_placement.engine.connection.sso import SingleSignOn
from ovirt_placement.store.causes import Cause
from ovirt_placement.store.fencing import LeaseLost
from ovirt_placement.store.intents import IntentState, Store
from ovirt_placement.store.pauses import ALL_CLUSTERS, Paused, PauseStore
from ovirt_simulator.core.affinity_commands import AffinityGroupEdit
from tests.enforcer.actions.migrate_vm import bench as benches
from tests.enforcer.actions.migrate_vm.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with benches.bench(tmp_path) as made:
        yield made


def at_next_log_in(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> None:
    """Let something happen while the next log-in takes its time, as if the process were stopped there."""
    log_in, due = SingleSignOn.log_in, [happens]

    def slow(self: SingleSignOn) -> str:
        token = log_in(self)
        if due:
            due.pop()()
        return token

    monkeypatch.setattr(SingleSignOn, "log_in", slow)


def test_a_step_is_not_sent_after_a_log_in_that_took_long(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench.connected() as connection:
        executor = bench.executor(connection)
        connection.get("/vms")
        bench.server.tokens.revoke_all()
        at_next_log_in(monkeypatch, lambda: bench.pass_time(20))
        with pytest.raises(Stale):
            executor.begin(bench.task(fresh_until=3.0))
        assert [intent.cause for intent in bench.intents()] == [Cause.NEVER_ASKED]
        assert bench.begun() == []
        # Nothing waits within the connection, to be sent with what comes next.
        (intent,) = executor.begin(bench.task(fresh_until=30.0))
    assert intent.state is IntentState.ACCEPTED
    assert bench.begun() == ["a"]


def test_the_lease_is_looked_at_after_a_log_in_as_well(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with bench.connected() as connection:
        connection.get("/vms")
        bench.server.tokens.revoke_all()
        at_next_log_in(monkeypatch, lambda: setattr(bench, "leads", False))
        with pytest.raises(LeaseLost):
            bench.executor(connection).begin(bench.task(fresh_until=3.0))
    assert bench.begun() == []
    # The next leader finds out what came of it.
    assert [intent.state for intent in bench.intents()] == [IntentState.PREPARED]


def paused_by_eve(bench: Bench) -> None:
    """As `ovirt-enforcer pause` does it, in a process of its own."""
    pauses = PauseStore(bench.config.store.url, engine="default", patience_seconds=5)
    pauses.pause(ALL_CLUSTERS, cluster_name="", reason="", set_by="eve", seconds=None)
    pauses.close()


def test_nothing_is_sent_after_a_pause_that_came_during_a_log_in(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench.connected() as connection:
        executor = bench.executor(connection)
        connection.get("/vms")
        bench.server.tokens.revoke_all()
        at_next_log_in(monkeypatch, lambda: paused_by_eve(bench))
        with pytest.raises(Paused, match="eve paused everything"):
            executor.begin(bench.task(fresh_until=30.0))
        assert [intent.cause for intent in bench.intents()] == [Cause.NEVER_ASKED]
        connection.get("/vms")
    assert bench.begun() == []


def test_nothing_begins_after_a_pause_that_came_since_the_gates_were_asked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an intent, and once it is resumed the same plan goes on."""
    admit, paused = Gates.admit, [bench]

    def admit_and_pause(self: Gates, *about: Any) -> Admitted:
        admitted = admit(self, *about)
        if paused:
            paused_by_eve(paused.pop())
        return admitted

    monkeypatch.setattr(Gates, "admit", admit_and_pause)
    with bench.enforcing() as daemon:
        bench.run(daemon, 200.0)
        assert not paused
        assert (bench.begun(), bench.intents()) == ([], [])
        pauses = PauseStore(bench.config.store.url, engine="default", patience_seconds=5)
        pauses.resume(ALL_CLUSTERS, set_by="eve")
        pauses.close()
        bench.run(daemon, 300.0)
    assert bench.begun() == ["a"]


def test_what_somebody_repaired_meanwhile_is_left_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session ends just before the request, and an administrator is faster than the next log-in."""
    prepare = Store.prepare

    def repair() -> None:
        bench.engine.affinity_groups.edit("pair", AffinityGroupEdit(vms=["b"]))
        bench.pass_time(20)

    def session_ends(self: Store, migrations: Any, **how: Any) -> Any:
        bench.server.tokens.revoke_all()
        at_next_log_in(monkeypatch, repair)
        return prepare(self, migrations, **how)

    monkeypatch.setattr(Store, "prepare", session_ends)
    with bench.enforcing() as daemon:
        bench.run(daemon, 300.0)
    assert bench.intents()
    assert bench.begun() == []


def test_a_reading_that_was_interrupted_is_too_old_and_one_of_a_slow_engine_is_not() -> None:
    freshness = Freshness()
    assert freshness.until(began=0.0, ended=1.0) == 4.0
    assert freshness.until(began=10.0, ended=30.0) == 13.0
    assert freshness.until(began=30.0, ended=50.0) == 53.0
