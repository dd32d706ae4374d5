"""Which VMs crashed: known from events of a simulated engine, so that admission control lets them restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.inventory.service.events import Crashes
from ovirt_placement.rules.elements.verdict import Request
from ovirt_placement.rules.failover.admission import filter_hosts
from tests.builders import cluster, host, snapshot, vm
from tests.placement.inventory.events import event
from tests.placement.inventory.stage import Stage, staged

#: The cluster is unsafe with the VM: no other host has room for it.
STATE = snapshot(
    cluster(ha_reservation=True, ha_failures=1),
    host("h1", free_mb=100),
    host("h2", free_mb=100),
    vm("db", "h1", ha=True, needs_mb=4000),
    vm("idle", "h2"),
)
DOWN = vm("db", ha=True)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path, STATE) as running:
        yield running


def crashed(stage: Stage, name: str) -> bool:
    return stage.follower.snapshot().vm_by_id[name].crashed


def accepted(stage: Stage) -> list[str]:
    verdicts = filter_hosts(stage.follower.snapshot(), Request(("db",), ("h1", "h2")))
    return [verdict.host for verdict in verdicts if verdict.accepted]


@pytest.mark.system
def test_a_vm_that_crashes_may_restart_and_has_not_crashed_when_it_runs(stage: Stage) -> None:
    assert not crashed(stage, "db")
    # When it is down it is too large for any host, until somebody changes that.
    stage.engine.vms.edit("db", memory_mb=60_000)
    stage.engine.vms.crash("db")
    for _ in range(20):
        stage.turn()
    assert stage.follower.snapshot().vm_by_id["db"].host is None
    assert crashed(stage, "db")
    assert accepted(stage) == ["h1", "h2"]
    stage.engine.vms.edit("db", memory_mb=2_000)
    stage.settle()
    assert stage.follower.snapshot().vm_by_id["db"].host == "h1"
    assert not crashed(stage, "db")


@pytest.mark.system
def test_what_somebody_stops_has_not_crashed(stage: Stage) -> None:
    stage.engine.vms.stop("db")
    stage.settle()
    assert not crashed(stage, "db")
    # On h1 nobody could take it over if that failed; from h2 it would find h1 empty.
    assert accepted(stage) == ["h2"]


def reported(*events: EngineEvent) -> bool:
    crashes = Crashes()
    for one in events:
        crashes.report(one)
    return crashes.include(DOWN)


@pytest.mark.parametrize("code", [119, 143])
def test_events_may_come_in_any_order(code: int) -> None:
    crash = event(5, code, vm="db")
    assert reported(crash)
    assert not reported(crash, event(6, 61, vm="db"))
    assert not reported(event(6, 32, vm="db"), crash)
    assert reported(event(4, 32, vm="db"), crash)
    assert reported(event(6, 32, vm="db"), event(7, code, vm="db"), crash)
    assert not reported(event(5, code, vm="other"))


def test_of_what_is_gone_nothing_is_known() -> None:
    crashes = Crashes()
    crashes.report(event(5, 119, vm="db"))
    assert not crashes.include(vm("db", "h1", ha=True))
    crashes.forget("db")
    assert not crashes.include(DOWN)
