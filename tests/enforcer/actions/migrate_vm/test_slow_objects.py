"""A VM about which the engine takes long to answer holds up nothing else, and is followed to its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ovirt_enforcer.service.daemon import Daemon
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.violations import find_violations
from ovirt_placement.store.intents import IntentState
from ovirt_simulator.http.disturbances import Disturbance
from tests.builders import CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.enforcer.actions.migrate_vm import bench as benches
from tests.enforcer.actions.migrate_vm.bench import Bench

pytestmark = pytest.mark.system

#: Much longer than all that a test does; a test that ends does not wait for it.
LONG = 300.0
OTHERS = ("b", "c", "d", "e")


def pairs() -> Snapshot:
    """Five VMs, each of which is to join its partner on another host; a is the first to be asked for."""
    names = ("a", *OTHERS)
    return snapshot(
        *(host(name) for name in ("h1", "h2", "h3")),
        *(vm(name, "h1") for name in names),
        *(vm(f"{name}2", "h2", migratable=False) for name in names),
        *(group(f"pair-{name}", TOGETHER, f"{name} {name}2", priority=9.0 * (name == "a")) for name in names),
    )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with benches.bench(tmp_path, pairs()) as made:
        yield made


def run_until_repaired(bench: Bench, daemon: Daemon) -> None:
    for _ in range(60):
        bench.run(daemon, bench.now + 5.0)
        violated = {name for one in find_violations(bench.engine.snapshot(), CLUSTER) for name in one.groups}
        if violated <= {"pair-a"} and {intent.vm for intent in bench.store.open_intents()} <= {"a"}:
            return
    raise AssertionError(f"not repaired: {violated}")


def test_a_migration_that_is_asked_for_and_not_answered_holds_up_no_other(bench: Bench) -> None:
    bench.server.disturbances.add(Disturbance(path="/vms/a(/|$)", delay_seconds=LONG, times=None))
    with bench.enforcing() as daemon:
        run_until_repaired(bench, daemon)
        assert sorted(bench.begun()) == [*OTHERS]  # the engine has not even begun with a
        open_intents = bench.store.open_intents()
        assert [(intent.vm, intent.state) for intent in open_intents] == [("a", IntentState.PREPARED)]


def test_a_migration_that_the_engine_does_not_show_holds_up_no_other(bench: Bench) -> None:
    bench.server.disturbances.add(
        Disturbance(method="GET", path="/vms/a(/|$)", delay_seconds=LONG, times=None)
    )
    with bench.enforcing() as daemon:
        run_until_repaired(bench, daemon)
        assert set(bench.begun()) == {"a", *OTHERS}
        assert "a" in {intent.vm for intent in bench.store.open_intents()}


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_answer_that_comes_late_counts(bench: Bench, method: str) -> None:
    bench.server.disturbances.add(
        Disturbance(method=method, path="/vms/a(/|$)", delay_seconds=LONG, times=None)
    )
    with bench.enforcing() as daemon:
        run_until_repaired(bench, daemon)
        bench.server.disturbances.clear()
        while bench.store.open_intents() or find_violations(bench.engine.snapshot(), CLUSTER):
            bench.run(daemon, bench.now + 5.0)
            assert bench.now < 3600
    assert sorted(bench.begun()) == ["a", *OTHERS]
    assert {intent.state for intent in bench.intents()} == {IntentState.DONE}
