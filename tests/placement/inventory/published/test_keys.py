"""Placement keys are published with the snapshot, of the store as it is now.

Each test learns what a process of its own would decide on that has no store to ask.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ovirt_placement import inventory
from ovirt_placement.config import Config
from ovirt_placement.inventory import NoSnapshot
from ovirt_placement.model import FrozenKeys, StickyCopy
from ovirt_placement.store.keys import Run
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from tests.builders import rule
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.published.key_store import configured_over, key, names, opened, published, soon
from tests.placement.inventory.running import ended, loaded, polls, running
from tests.stored import put_keys

pytestmark = pytest.mark.system


@pytest.fixture
def file(tmp_path: Path, engine: EngineServer, url: str) -> Path:
    """The store takes as long to answer as a busy machine does."""
    found = configured_over(tmp_path, engine, url)
    found.write_text(found.read_text().replace("[store]", "[store]\npatience_seconds = 30.0"))
    return found


@pytest.fixture
def config(file: Path) -> Config:
    return loaded(file)


def test_all_keys_of_the_store_are_published_at_the_start_and_as_they_change(
    file: Path, config: Config, url: str, engine: EngineServer
) -> None:
    copy = StickyCopy(vm="v", name="SAN", value=1.0, weight=60.0)
    with opened(url) as store:
        put_keys(store, [key("A")])
        store.begin_runs([Run("v", None, (("B", 0.1),), (copy,))])
        with running(file) as service:
            first = published(config)
            assert (first.placement_keys, first.sticky_copies) == ((key("A"),), (copy,))
            assert first.frozen_keys == (FrozenKeys("v", (("B", 0.1),)),)
            asked = polls(engine)
            put_keys(store, [key("C")])
            store.end_runs(["v"])
            after = soon(config, lambda found: names(found) == ["A", "C"] and not found.frozen_keys)
            assert after.sticky_copies == (copy,)
            assert polls(engine) <= asked + 1  # they do not wait for the engine, which may be asked for more
            ended(service)


def test_what_was_set_before_a_decision_is_seen_by_it(file: Path, config: Config, url: str) -> None:
    with opened(url) as store, running(file) as service:
        for number in range(10):
            put_keys(store, [key(f"K{number}")])
            max_age = 0.0 if number % 3 == 0 else 0.001
            if max_age:
                time.sleep(max_age)
            assert f"K{number}" in names(inventory.snapshot(config=config, max_age=max_age, deadline=30))
        ended(service)


def test_before_there_is_a_store_there_are_no_keys_and_nothing_is_wrong(
    file: Path, config: Config, url: str
) -> None:
    with running(file) as service:
        assert names(inventory.snapshot(config=config, max_age=0, deadline=30)) == []
        with opened(url) as store:
            put_keys(store, [key("A")])
        assert names(inventory.snapshot(config=config, max_age=0, deadline=30)) == ["A"]
        log = ended(service)
    assert log.count("there is no store yet") == 1
    assert "WARNING" not in log


def test_keys_are_published_while_the_engine_is_away(
    file: Path, config: Config, url: str, engine: EngineServer
) -> None:
    with opened(url) as store, running(file) as service:
        engine.answer = lambda path: (503, b"<html>")
        with pytest.raises(NoSnapshot):
            inventory.snapshot(config=config, max_age=0, deadline=30)
        put_keys(store, [key("A")])
        soon(config, lambda found: names(found) == ["A"])
        ended(service)


def test_placement_rules_are_published_at_once_and_by_whom_nobody_publishes(
    file: Path, config: Config, url: str
) -> None:
    first, second = rule("a", "at_most_per_host", most=1), rule("b", "at_most_per_host", "tag:web", most=2)
    store = RuleStore(url, engine=config.engine.name, patience_seconds=30)
    store.change(lambda standing: RuleChange(put=(first,)), changed_by="ann")
    with running(file) as service:
        assert inventory.snapshot(config=config, max_age=60, deadline=30).placement_rules == (first,)
        store.change(lambda standing: RuleChange(put=(second,)), changed_by="ann")
        soon(config, lambda found: found.placement_rules == (first, second))
        ended(service)
    alone = inventory.snapshot(config=config, max_age=0, deadline=30)
    assert alone.placement_rules == (first, second)
    store.close()
