"""What a store says over the engine's state: open intents, and keys whatever became of their objects."""

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_placement.config import StoreSettings
from ovirt_placement.engine.vms import Detail
from ovirt_placement.inventory.on_demand import Demands
from ovirt_placement.inventory.publication import now
from ovirt_placement.inventory.stored import (
    KeyWatch,
    StoreReader,
    as_recorded,
    demands_of,
    with_intents,
    with_keys,
)
from ovirt_placement.model import FrozenKeys, Pending, PlacementKey, Snapshot, StickyCopy
from ovirt_placement.model.state_file import check
from ovirt_placement.store.enforcer.intents import Intent, IntentState
from ovirt_placement.store.keys import KeyRecords, KeyStore, Run
from tests import builders
from tests.stored import put_keys


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


def test_what_is_pending_already_is_not_counted_twice_and_nothing_changes_without_an_intent() -> None:
    once = with_intents(state(), [intent()])
    assert with_intents(once, [intent()]) is with_intents(once, []) is once


DEADLINE_SECONDS = 30


def key(level: str, resource: str, name: str = "GEN") -> PlacementKey:
    return builders.key(name, level=level, resource=resource)


def engine() -> Snapshot:
    return builders.snapshot(builders.host("h1"), builders.vm("v1", "h1"))


KEPT = (
    *(key("cluster", builders.CLUSTER), key("server", "v1"), key("node", "h1")),
    *(key("vdc", "whatever"), key("disk_offer", "whatever")),
)


def test_what_belongs_to_objects_that_are_gone_is_left_out() -> None:
    gone = (key("cluster", "gone"), key("server", "gone"), key("node", "gone"))
    frozen, copy = FrozenKeys("v1", (("A", 1.0),)), StickyCopy("v1", "SAN", 1.0, 60.0)
    records = KeyRecords(
        1, (*gone, *KEPT), (FrozenKeys("gone", ()), frozen), (StickyCopy("gone", "SAN", 1.0, 60.0), copy)
    )
    found = with_keys(engine(), records)
    assert found.placement_keys == KEPT
    assert (found.frozen_keys, found.sticky_copies) == ((frozen,), (copy,))
    check(found)
    kept = as_recorded(engine(), records)  # rules pass over what is gone, and the lists stay the same
    assert (kept.placement_keys, kept.frozen_keys) == (records.placement_keys, records.frozen_keys)
    assert kept.sticky_copies is records.sticky_copies
    assert demands_of(records) == Demands(Detail.DISKS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[KeyStore]:
    url = f"sqlite:///{tmp_path}/store.db"
    with contextlib.closing(KeyStore(url, engine="default", patience_seconds=30)) as opened:
        put_keys(opened, KEPT)
        yield opened


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[KeyWatch]:
    settings = StoreSettings(url=f"sqlite:///{tmp_path}/store.db", patience_seconds=DEADLINE_SECONDS)
    with contextlib.closing(KeyWatch(settings, "default")) as found:
        yield found


def over(watch: KeyWatch, base: Snapshot) -> Snapshot:
    return watch.ask_keys(now()).over(base)


def soon(watch: KeyWatch, base: Snapshot, keys: tuple[PlacementKey, ...]) -> Snapshot:
    """Ask until the keys are these: a busy machine may take longer than the watch waits for its store."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (found := over(watch, base)).placement_keys != keys:
        assert time.monotonic() < deadline, found.placement_keys
    return found


def by_place(*keys: PlacementKey) -> tuple[PlacementKey, ...]:
    return tuple(sorted(keys, key=lambda key: (key.level, key.resource, key.key_class, key.name)))


def test_keys_are_in_the_snapshot_as_soon_as_they_are_set(store: KeyStore, watch: KeyWatch) -> None:
    base = engine()
    first = soon(watch, base, by_place(*KEPT))
    assert over(watch, base).placement_keys is first.placement_keys
    more = key("node", "h1", "SAN")
    put_keys(store, [more])
    soon(watch, base, by_place(*KEPT, more))
    frozen = (FrozenKeys("v1", (("A", 1.0),)),)
    store.begin_runs([Run("v1", None, frozen[0].keys)])
    deadline = time.monotonic() + DEADLINE_SECONDS
    while over(watch, base).frozen_keys != frozen:
        assert time.monotonic() < deadline


def test_the_last_known_keys_outlive_a_store_that_is_away(
    store: KeyStore, watch: KeyWatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    file, elsewhere = tmp_path / "store.db", tmp_path / "elsewhere.db"
    soon(watch, engine(), by_place(*KEPT))
    store.close()
    file.rename(elsewhere)
    for _ in range(2):
        assert over(watch, engine()).placement_keys == by_place(*KEPT)
    elsewhere.rename(file)
    soon(watch, engine(), by_place(*KEPT))
    assert caplog.text.count("store init; those read last count") == 1
    assert caplog.text.count("placement keys are read again") == 1
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("DROP TABLE key_revision")
    for _ in range(3):
        assert over(watch, engine()).placement_keys == by_place(*KEPT)
    file.unlink()
    assert over(watch, engine()).placement_keys == by_place(*KEPT)


def test_without_a_store_the_snapshot_keeps_its_own_keys(watch: KeyWatch, tmp_path: Path) -> None:
    base = replace(engine(), placement_keys=KEPT)
    assert over(watch, base) is base
    assert not watch.ask_keys(now()).is_unread
    (tmp_path / "store.db").write_text("no database" * 100)  # it comes and cannot be read
    assert watch.ask_keys(now()).is_unread


def test_until_its_first_answer_a_store_is_waited_for_longer(tmp_path: Path) -> None:
    """However often it was asked before: a decision would be made without its keys."""
    release = threading.Event()
    settings = StoreSettings(url=f"sqlite:///{tmp_path}/store.db", patience_seconds=0.001)

    def ask(*_: object) -> str:
        return "keys" if release.wait(DEADLINE_SECONDS) else ""

    reader = StoreReader(settings, "default", "", "ovirt_placement.store.sql.access.StoreAccess", ask)
    assert reader.ask_store()  # there is no store yet
    (tmp_path / "store.db").touch()
    assert not reader.ask_store(0.0)
    threading.Timer(0.1, release.set).start()
    assert reader.ask_store(DEADLINE_SECONDS)
    assert reader.found == "keys"
    reader.close()
