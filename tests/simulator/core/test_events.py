"""The audit log: events that come before their state, late ids, and what users add and dismiss."""

from __future__ import annotations

from typing import Any

import pytest

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Event
from ovirt_simulator.core.settings import Settings
from tests.builders import host, vm
from tests.simulator.core import engines

FIELDS: dict[str, Any] = {"origin": "tests", "severity": "warning", "custom_id": 1, "description": "d"}


def add(engine: Engine, **fields: Any) -> Event:
    return engine.events.add(**{**FIELDS, **fields})


def test_an_event_is_there_before_the_state_it_speaks_of() -> None:
    settings = Settings(state_lag_seconds=5.0, late_event_probability=0.0)
    engine = engines.engine(host("h1"), vm("v"), settings=settings)
    engine.vms.start("v")
    early = 0
    for _ in range(200):
        engine.advance(0.1)
        if 32 in engines.codes(engine) and engines.where(engine, "v")[0] != "up":
            early += 1
    assert early > 0
    assert engines.where(engine, "v") == ("up", "h1")


def test_ids_become_visible_out_of_order_but_all_do() -> None:
    settings = Settings(late_event_probability=0.5, late_event_seconds=3.0)
    engine = engines.engine(host("h1"), settings=settings)
    late = False
    for number in range(40):
        engine.labels.add(f"label{number}")
        engine.advance(0.1)
        ids = [event.id for event in engine.queries.events()]
        assert ids == sorted(ids, reverse=True)
        late = late or bool(ids and len(ids) < ids[0])
    assert late
    engine.advance(10)
    assert [event.id for event in engine.queries.events()] == list(range(40, 0, -1))


def test_the_author_of_an_event_finds_it_at_once() -> None:
    settings = Settings(late_event_probability=1.0, late_event_seconds=3.0)
    engine = engines.engine(host("h1"), settings=settings)
    event = add(engine)
    assert engine.queries.events() == (event,)


@pytest.mark.parametrize(
    ("severity", "code"), [("normal", 9801), ("warning", 9802), ("error", 9803), ("alert", 9804)]
)
def test_an_external_event_is_kept_as_it_was_reported(severity: str, code: int) -> None:
    engine = engines.engine(host("h1"), vm("v"))
    event = add(engine, severity=severity, vm="v", host="nowhere", description="y" * 20000)
    assert (event.code, event.severity, event.origin, event.custom_id) == (code, severity, "tests", 1)
    assert len(event.description) == 10000
    assert (event.vm and event.vm.name, event.host) == ("v", None)
    assert engine.queries.events() == (event,)


def test_origin_and_custom_id_are_unique() -> None:
    engine = engines.engine(host("h1"))
    add(engine)
    refusal = engines.refused(add, engine)
    assert refusal.http_status == 400
    assert refusal.detail == (
        "[=Cannot add External Event. External Event with this custom id already exists.]"
    )
    add(engine, custom_id=2)
    add(engine, origin="others")
