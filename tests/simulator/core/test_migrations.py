"""Migrations: what one sees of them, what refuses them, and what can go wrong."""

from typing import Any

import pytest

from ovirt_simulator.core import messages
from ovirt_simulator.core.backend import MigrationFault
from ovirt_simulator.scheduler.placing import Scheduler
from tests.builders import TOGETHER, group, host, vm
from tests.simulator.core import engines

FAIL = MigrationFault(fail=True)


def test_a_command_lets_go_of_no_vm_that_another_holds_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """The migration has ended, and somebody has begun the next one, before the first command returns."""
    engine = engines.engine(host("h1"), host("h2"), vm("v", "h1"))
    schedule, locks = Scheduler.schedule, engine._backend.vm_locks
    other = messages.vm_being_migrated("v")

    def slow(self: Scheduler, *arguments: Any) -> None:
        schedule(self, *arguments)
        engine.advance(60)
        locks["v"] = other

    monkeypatch.setattr(Scheduler, "schedule", slow)
    engine.vms.migrate("v")
    assert (engines.where(engine, "v"), locks["v"]) == (("up", "h2"), other)
    locks.clear()
    engine.vms.stop("v")
    engine.advance(60)
    engine.vms.start("v")
    assert locks["v"] is other


def test_a_vm_that_migrates_is_locked() -> None:
    engine = engines.engine(host("h1"), host("h2"), host("h3"), vm("v", "h1"))
    engine.vms.migrate("v")
    refusal = engines.refused(engine.vms.migrate, "v", host_id="h3")
    assert (refusal.http_status, refusal.detail) == (409, "[Cannot migrate VM. VM v is being migrated.]")
    assert engines.refused(engine.vms.stop, "v").http_status == 409
    engine.advance(30)
    engine.vms.migrate("v")


def test_a_failure_is_tried_again_on_another_host() -> None:
    engine = engines.engine(host("h1"), host("h2"), host("h3"), vm("v", "h1"))
    engine.faults.expect(FAIL)
    engine.vms.migrate("v")
    engine.advance(30)
    assert engines.where(engine, "v") in {("up", "h2"), ("up", "h3")}
    assert engines.codes(engine) == [62, 128, 62, 63]


@pytest.mark.parametrize("others", range(1, 7))
def test_three_more_hosts_are_tried_after_the_first(others: int) -> None:
    engine = engines.engine(host("h0"), *(host(f"h{at}") for at in range(1, others + 1)), vm("v", "h0"))
    free = engines.host(engine, "h1").free_mb
    engine.faults.expect(FAIL, count=99)
    job = engine.vms.migrate("v")
    engine.advance(300)
    assert (engines.shown(engine, "v"), engines.host(engine, "h1").free_mb) == (["up h0"], free)
    assert engines.job(engine, job.id).status == "failed"
    tries = min(others, 1 + 3)
    # After a failure it is said that another is tried, whether there is one or not.
    failures = tries if others <= 3 else tries - 1
    assert [engines.codes(engine).count(code) for code in (62, 128, 65)] == [tries, failures, 1]


def test_a_failure_towards_a_named_host_is_final() -> None:
    engine = engines.engine(host("h1"), host("h2"), host("h3"), vm("v", "h1"))
    engine.faults.expect(FAIL, identity="v")
    engine.vms.migrate("v", host_id="h2")
    engine.advance(60)
    assert (engines.shown(engine, "v"), engines.codes(engine)) == (["up h1"], [62, 120])


def test_slow_hanging_and_refused_migrations() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("s", "h1"), vm("h", "h1"), vm("r", "h1"))
    for identity, fault in (("s", {"slow": 10}), ("h", {"hang": True}), ("r", {"refuse": True})):
        engine.faults.expect(MigrationFault(**fault), identity=identity)
    engine.vms.migrate("s")
    engine.vms.migrate("h")
    assert engines.refused(engine.vms.migrate, "r").http_status == 400
    engine.advance(20)
    assert engines.shown(engine, "s") == ["migrating h1"]
    engine.advance(3600)
    assert engines.shown(engine, "s", "h", "r") == ["up h2", "migrating h1", "up h1"]
    engine.vms.migrate("r")


def test_cancelling_leaves_the_vm_where_it_is() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("v", "h1"))
    engine.vms.migrate("v")
    engine.advance(1)
    engine.vms.cancel_migration("v")
    engine.advance(60)
    assert (engines.shown(engine, "v"), engines.codes(engine)) == (["up h1"], [62, 161])
    refusal = engines.refused(engine.vms.cancel_migration, "v")
    assert (refusal.http_status, refusal.detail) == (409, "[Cannot cancel migration for non migrating VM.]")


def test_a_migration_that_is_handed_over_cannot_be_cancelled() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("v", "h1"))
    engine.vms.migrate("v")
    engine.advance(3.2)
    assert engines.shown(engine, "v") == ["migrating h2"]
    assert engines.refused(engine.vms.cancel_migration, "v").http_status == 409
    engine.advance(5)
    assert engines.shown(engine, "v") == ["up h2"]


def test_a_closure_moves_together() -> None:
    tied = (group("g1", TOGETHER, "a c"), group("g2", TOGETHER, "c b"))
    vms = (vm("a", "h1"), vm("b", "h1"), vm("c"), vm("d", "h1"))
    engine = engines.engine(*map(host, ("h1", "h2", "h3")), *vms, *tied)
    engine.vms.migrate("a", host_id="h3", closure=True)
    engine.advance(60)
    assert engines.shown(engine, *"abcd") == ["up h3", "up h3", "down", "up h1"]
