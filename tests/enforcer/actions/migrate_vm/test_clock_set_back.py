"""The database's clock is set back by an hour: nothing waits for that hour, and nothing is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ovirt_placement.store.approvals import ApprovalStore
from ovirt_placement.store.intents import IntentState
from ovirt_placement.store.pauses import ALL_CLUSTERS, PauseStore
from ovirt_placement.store.violated_rules import ViolatedRuleStore
from ovirt_simulator.http.disturbances import Disturbance
from tests.builders import CLUSTER
from tests.enforcer.actions.migrate_vm import bench as benches
from tests.enforcer.actions.migrate_vm.bench import Bench
from tests.stored import prepared

HOUR = 3600.0


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with benches.bench(tmp_path) as made:
        yield made


@pytest.mark.system
def test_a_lost_request_is_settled_and_the_cooldown_ends(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.server.disturbances.add(Disturbance(method="POST", path="/migrate", drop="request"))
    with bench.enforcing() as daemon:
        bench.run(daemon, 2.0)
        assert [intent.state for intent in bench.store.open_intents()] == [IntentState.UNKNOWN]
        bench.set_back = HOUR
        bench.run(daemon, 40.0)
        assert bench.store.open_intents() == ()
        # The cooldown of 10 minutes holds it, and no longer.
        bench.run(daemon, 500.0)
        assert bench.begun() == []
        bench.run(daemon, 720.0)
    assert bench.begun() == ["a"]
    assert "the database's clock was set back" in caplog.text


def test_no_age_of_a_migration_is_negative(bench: Bench) -> None:
    prepared(bench.store, vm="a", cluster=CLUSTER, source="h1", target="h2", correlation_id="asked")
    bench.set_back = HOUR
    (intent,) = bench.store.open_intents()
    assert intent.age_seconds == 0.0


def test_all_that_gates_remember_counts_as_of_now(bench: Bench) -> None:
    parts = [
        part(bench.config.store.url, engine="default", patience_seconds=5)
        for part in (PauseStore, ApprovalStore, ViolatedRuleStore)
    ]
    pauses, approvals, violated = parts
    assert isinstance(pauses, PauseStore)
    assert isinstance(approvals, ApprovalStore)
    assert isinstance(violated, ViolatedRuleStore)
    bench.now = 100.0
    pauses.pause(CLUSTER, cluster_name=CLUSTER, reason="", set_by="me", seconds=60)
    pauses.resume(ALL_CLUSTERS, set_by="me")
    approvals.order(CLUSTER, "plan", (), set_by="me")
    violated.look(CLUSTER, ["rule"], cycle_seconds=10, enough=3)
    bench.set_back = HOUR
    assert bench.store.settle_clock()
    assert not bench.store.settle_clock()
    assert approvals.approvals()[0].age_seconds == pytest.approx(0, abs=0.01)
    assert pauses.resumed()[ALL_CLUSTERS] == pytest.approx(0, abs=0.01)
    bench.now += 10
    violated.look(CLUSTER, ["rule"], cycle_seconds=10, enough=3)
    assert violated.cycles() == {"rule": 2}
    assert len(pauses.pauses()) == 1
    bench.now += 51
    assert pauses.pauses() == ()
    for part in parts:
        part.close()
