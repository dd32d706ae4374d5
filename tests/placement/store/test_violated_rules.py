"""A rule's cycles are counted while it is violated, once a cycle, and begin again after it held."""

from __future__ import annotations

from typing import Any

import pytest

from ovirt_placement.store.enforcer.leader import ViolatedRuleStore
from ovirt_placement.store.sql.schema import violated_rules
from tests.placement.databases import database
from tests.placement.store.conftest import Opening


@pytest.fixture
def store(opening: Opening) -> ViolatedRuleStore:
    return opening(ViolatedRuleStore)


def look(store: ViolatedRuleStore, *rules: str, **how: Any) -> dict[str, int]:
    store.record_violated("c1", rules, **{"cycle_seconds": 60.0, "enough": 3, **how})
    return store.cycles()


def wait(url: str, seconds: float) -> None:
    with database(url) as connection:
        table = violated_rules
        connection.execute(table.update().values(counted=table.c.counted - seconds))


def test_a_cycle_counts_once(store: ViolatedRuleStore, url: str) -> None:
    assert look(store, "a", "b") == {"a": 1, "b": 1}
    wait(url, 50)
    assert look(store, "a", "b") == {"a": 1, "b": 1}
    wait(url, 9)
    assert look(store, "a", "b", "c") == {"a": 2, "b": 2, "c": 1}


def test_what_held_begins_again(store: ViolatedRuleStore, url: str) -> None:
    look(store, "a", "b")
    wait(url, 60)
    assert look(store, "b") == {"b": 2}
    wait(url, 60)
    assert look(store, "a", "b") == {"a": 1, "b": 3}
    assert look(store) == {}


def test_no_more_is_counted_than_is_asked_for(store: ViolatedRuleStore, url: str) -> None:
    for _ in range(5):
        look(store, "a")
        wait(url, 60)
    assert look(store, "a") == {"a": 3}


def test_a_look_is_at_one_cluster(store: ViolatedRuleStore) -> None:
    look(store, "a")
    store.record_violated("c2", {"z"}, cycle_seconds=60, enough=3)
    assert look(store, "b") == {"b": 1, "z": 1}


def test_more_rules_than_a_statement_has_parameters_for(store: ViolatedRuleStore) -> None:
    many = [f"rule {number}" for number in range(1201)]
    assert len(look(store, *many)) == 1201
    assert look(store, many[0]) == {many[0]: 1}
