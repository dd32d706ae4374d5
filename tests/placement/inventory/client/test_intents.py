"""An intent is pending until the engine itself shows what came of it."""

from __future__ import annotations

from typing import Any

import pytest

from ovirt_placement.inventory.stored import with_intents
from ovirt_placement.model import Pending, Snapshot
from ovirt_placement.store.enforcer.intents import Intent, IntentState
from tests import builders


def intent(**fields: Any) -> Intent:
    values: dict[str, Any] = {
        "id": 1, "vm": "v", "cluster": builders.CLUSTER, "source": "h1", "target": "h2", "memory_mb": 64,
        "correlation_id": "x", "state": IntentState.ACCEPTED, "created": 0.0, "updated": 0.0,
        "age_seconds": 1.0, "error": None, **fields,
    }  # fmt: skip
    return Intent(**values)


def state(**vm: Any) -> Snapshot:
    return builders.snapshot(
        builders.host("h1"),
        builders.host("h2"),
        builders.vm("v", **{"status": "up", "host": "h1", "memory_mb": 256, **vm}),
    )


ON_ITS_WAY = (Pending(vm="v", host="h2", memory_mb=64),)


@pytest.mark.parametrize(
    ("vm", "fields", "pending"),
    [
        ({}, {}, ON_ITS_WAY),
        ({}, {"state": IntentState.PREPARED}, ON_ITS_WAY),
        ({"status": "migrating"}, {"age_seconds": 3600.0}, ON_ITS_WAY),
        ({"status": "migrating", "host": "h2"}, {}, ON_ITS_WAY),
        ({"status": "down", "host": None}, {"source": None}, ON_ITS_WAY),
        ({"host": "h2"}, {}, ()),  # arrived
        ({}, {"age_seconds": 31.0}, ()),  # stayed
        ({}, {"vm": "removed"}, ()),
        ({}, {"target": "removed"}, ()),
        ({}, {"memory_mb": None}, (Pending(vm="v", host="h2", memory_mb=256),)),
    ],
)
def test_what_is_decided_and_not_to_be_seen_is_pending(
    vm: dict[str, Any], fields: dict[str, Any], pending: tuple[Pending, ...]
) -> None:
    assert with_intents(state(**vm), [intent(**fields)]).pending == pending


def test_what_is_pending_already_is_not_counted_twice() -> None:
    once = with_intents(state(), [intent()])
    assert with_intents(once, [intent()]) is once


def test_nothing_changes_without_an_intent() -> None:
    before = state()
    assert with_intents(before, []) is before
