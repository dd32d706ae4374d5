"""Scheduling policies in the inventory: once a change was read, nothing takes it back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.inventory.on_demand import NOTHING
from ovirt_placement.inventory.service.readings import LargerReadings
from ovirt_placement.inventory.service.schedule import ReconciliationScope
from ovirt_simulator.core.entities import UnitType
from ovirt_simulator.http.control import Disturbance
from tests.builders import cluster, host, snapshot
from tests.placement.inventory.stage import Stage, staged


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path, snapshot(cluster("c1"), host("h1", cluster="c1"))) as made:
        made.engine.policies.add("ours")
        made.engine.policies.update_cluster("c1", policy_name="ours")
        made.settle()
        yield made


def policy_id(stage: Stage) -> str:
    (found,) = (each.id for each in stage.engine.queries.state.policies.values() if each.name == "ours")
    return found


def add_weight(stage: Stage, factor: int) -> None:
    queries = stage.engine.queries
    (unit,) = (
        each.id
        for each in queries.state.units.values()
        if (each.type, each.name) == (UnitType.WEIGHT, "OptimalForHaReservation")
    )
    stage.engine.policies.add_weight(policy_id(stage), unit, factor=factor)


def known_factor(stage: Stage) -> int | None:
    return stage.follower.snapshot().cluster_by_id["c1"].policy.get("ha_weight")


@pytest.mark.system
def test_a_larger_reading_soon_after_a_change_does_not_bring_back_what_was(stage: Stage) -> None:
    larger = LargerReadings()
    larger.read(stage.connection, ReconciliationScope.WHOLE, NOTHING, stage.now)
    add_weight(stage, 7)
    stage.settle()
    assert known_factor(stage) == 7
    stage.follower.hand_in(larger.read(stage.connection, ReconciliationScope.WHOLE, NOTHING, stage.now))
    stage.turn()
    assert known_factor(stage) == 7


@pytest.mark.system
def test_a_cluster_that_changes_after_a_silence_does_not_bring_back_what_was(stage: Stage) -> None:
    stage.server.disturbances.add(Disturbance(path="/events", status=503, times=None))
    add_weight(stage, 7)
    for _ in range(40):
        stage.turn()
    stage.server.disturbances.clear()
    stage.settle()
    assert known_factor(stage) == 7
    stage.engine.policies.update_cluster("c1", description="changed")
    stage.settle()
    assert known_factor(stage) == 7


@pytest.mark.system
def test_a_policy_that_is_saved_after_its_event_is_known_in_the_end(stage: Stage) -> None:
    saved = stage.engine._backend.state
    add_weight(stage, 7)
    later = saved.policies[policy_id(stage)]
    saved.put(saved.policies, replace(later, weights=()))
    for _ in range(3):
        stage.turn()
    assert known_factor(stage) is None
    saved.put(saved.policies, later)
    stage.settle()
    assert known_factor(stage) == 7
