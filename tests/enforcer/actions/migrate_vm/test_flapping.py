"""A move is neither repeated nor undone unless its cause has changed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_enforcer.actions.migrate_vm import flapping
from ovirt_enforcer.actions.migrate_vm.fingerprint import digest
from ovirt_placement.engine.connection.client import connect
from ovirt_placement.model import Snapshot
from ovirt_placement.store.intents import Intent, IntentState
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import serve
from tests.builders import SOFT_APART, group, host, snapshot, vm
from tests.scenarios.stage import START, configured, daemon_of, simulated_time

STATE = snapshot(
    host("h1"),
    host("h2"),
    vm("a", "h1"),
    vm("b", "h1", migratable=False),
    group("apart", SOFT_APART, "a b"),
)


def at(place: str, state: Snapshot = STATE) -> Snapshot:
    return replace(state, vms=tuple(replace(one, host=place) if one.id == "a" else one for one in state.vms))


def done(age: float, **fields: Any) -> Intent:
    facts: dict[str, Any] = {
        "id": 1,
        "vm": "a",
        "cluster": "cluster1",
        "source": "h1",
        "target": "h2",
        "memory_mb": 1024,
        "correlation_id": "c",
        "state": IntentState.DONE,
        "created": 0.0,
        "updated": 0.0,
        "age_seconds": age,
        "error": None,
        "fingerprint": digest(STATE, "a", ("h1", "h2")),
    }
    return Intent(**{**facts, **fields})


def test_a_vm_that_somebody_moved_back_is_left_alone_for_a_while() -> None:
    assert flapping.undone(at("h1"), [done(100.0)], 900.0).keys() == {"a"}
    assert flapping.undone(at("h1"), [done(901.0)], 900.0) == {}
    assert flapping.undone(at("h2"), [done(100.0)], 900.0) == {}


def test_longer_each_time() -> None:
    history = [done(3000.0), done(1700.0)]
    assert flapping.undone(at("h1"), history, 900.0)["a"].pause_seconds == 1800.0
    assert flapping.undone(at("h1"), [done(3000.0), done(1801.0)], 900.0) == {}


@pytest.mark.parametrize(
    "changed",
    [
        {"affinity_groups": ()},
        {"hosts": (host("h1"), host("h2", tags=("new",)))},
        {"vms": (vm("a", "h1"), vm("b"))},
    ],
    ids=["the rules", "a host", "who runs"],
)
def test_a_change_of_the_cause_ends_it(changed: dict[str, Any]) -> None:
    assert flapping.undone(replace(at("h1"), **changed), [done(100.0)], 900.0) == {}
    assert flapping.left_behind(replace(at("h2"), **changed), [done(100.0)], 900.0) == {}


def test_a_vm_is_not_sent_back_to_where_it_was_taken_from() -> None:
    assert flapping.left_behind(at("h2"), [done(100.0)], 900.0).keys() == {("a", "h1")}
    assert flapping.left_behind(at("h2"), [done(901.0)], 900.0) == {}


class World:
    """An engine and a daemon, and somebody who moves VM a back to h1 whenever it has left."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.now = 0.0
        self.moved_back = 0
        self.arrived = 0.0

    def cycle(self, daemon: Any) -> None:
        seconds = max(1.0, daemon.cycle())
        self.engine.advance(seconds)
        self.now += seconds
        found = self.engine.snapshot().vm_by_id["a"]
        if found.host != "h2" or found.status != "up":
            self.arrived = self.now
        elif self.now > self.arrived + 20.0:
            self.moved_back += 1
            self.engine.vms.migrate("a", host_id="h1")


@pytest.fixture
def world() -> Iterator[World]:
    return World(Engine.from_snapshot(STATE, clock=START, settings=PROMPT))


@pytest.mark.system
def test_who_moves_it_back_each_time_is_named_once_and_tried_ever_more_seldom(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(world.engine)
    config = configured(
        tmp_path,
        server.api_url,
        {"mode": "enforce", "repair": ["soft"], "cooldown_after_success_seconds": 0, "interval_seconds": 300},
    )
    caplog.set_level(logging.WARNING)
    with (
        connect(config.engine) as connection,
        simulated_time(lambda: world.now),
        daemon_of(config, connection, lambda: world.now) as daemon,
    ):
        while world.now < 3.5 * 3600:
            world.cycle(daemon)
    server.close()
    # Again after 15 minutes, then after 30, 60 and (not yet) 120.
    assert world.moved_back == 4
    warnings = [one.getMessage() for one in caplog.records if "by somebody else" in one.getMessage()]
    assert len(warnings) == world.moved_back
    assert all("admin@internal" in line for line in warnings)
