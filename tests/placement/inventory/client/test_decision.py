"""A unit waits for the engine a moment at most: then what was known last decides."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement import inventory
from ovirt_placement.config import PATH_VARIABLE
from ovirt_placement.inventory.client import decision
from ovirt_placement.inventory.published.publication import Moments, now
from ovirt_placement.inventory.published.writer import Writer
from ovirt_placement.model import Snapshot
from tests.builders import host, snapshot, vm

#: These assertions depend on real time.

BASE = snapshot(host("h1"), host("h2"), vm("a"), vm("b"))
#: Long enough for a machine that is busy with other tests, far below any deadline.
SHORT_SECONDS = 3.0


class Published:
    """A folder in which somebody once published, and where nobody does any more."""

    def __init__(self, folder: Path) -> None:
        self._writer = Writer(folder)

    def publish(self, state: Snapshot, *, seconds_ago: float) -> None:
        at = now() - seconds_ago
        self._writer.publish(state, Moments(at, store_asked_at=at, keys_at=at))


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Published:
    config = tmp_path / "ovirt-placement.toml"
    config.write_text(
        f'[engine]\nurl = "http://127.0.0.1:9/ovirt-engine/api"\nusername = "admin@internal"\n'
        f'[inventory]\ndirectory = "{tmp_path}"\nengine_wait_ms = 50\nlongest_age_seconds = 60\n'
        f'[store]\nurl = "sqlite:///{tmp_path}/store.db"\n'
    )
    monkeypatch.setenv(PATH_VARIABLE, str(config))
    monkeypatch.setenv("OVIRT_PASSWORD", "password")
    monkeypatch.setattr(decision, "_process", decision._Process())
    inventory.close()  # with the configuration that was read
    return Published(tmp_path)


def test_what_was_published_last_decides_where_nothing_fresher_comes(published: Published) -> None:
    published.publish(BASE, seconds_ago=20)
    found = inventory.decision()
    assert found.confirmed == BASE
    assert 20 <= found.age_seconds < 20 + SHORT_SECONDS


@pytest.mark.system
@pytest.mark.timing
def test_after_a_wait_in_vain_nobody_waits(published: Published) -> None:
    published.publish(BASE, seconds_ago=20)
    inventory.decision()
    assert decision._process.late
    began = time.monotonic()
    for _ in range(100):
        inventory.decision()
    assert time.monotonic() - began < SHORT_SECONDS


def test_what_is_too_old_decides_nothing(published: Published) -> None:
    published.publish(BASE, seconds_ago=120)
    with pytest.raises(inventory.NoSnapshot):
        inventory.decision()


def test_with_nothing_known_there_is_no_decision(published: Published) -> None:
    with pytest.raises(inventory.NoSnapshot):
        inventory.decision()


def test_filters_see_what_is_confirmed_and_weights_what_is_expected(published: Published) -> None:
    published.publish(BASE, seconds_ago=0)
    first = inventory.decision()
    first.expect_accepted("AffinityFilter", BASE.vm_by_id["a"], ["h2"])
    second = inventory.decision()
    assert second.confirmed.pending == ()
    assert [(one.vm, one.host, one.expected) for one in second.snapshot.pending] == [("a", "h2", True)]
    assert second.snapshot.unconfirmed == {"a"}
    assert second.unsure({"a"}) == set()


def test_what_is_corrected_is_expected_elsewhere(published: Published) -> None:
    published.publish(BASE, seconds_ago=0)
    inventory.decision().expect_accepted("AffinityFilter", BASE.vm_by_id["a"], ["h2"])
    wrong = inventory.decision()
    assert wrong.snapshot.pending
    wrong.correct("a", "h1")
    assert [one.host for one in inventory.decision().snapshot.pending] == ["h1"]
    again = inventory.decision()
    assert again.snapshot.pending
    again.correct("a", None)
    assert inventory.decision().snapshot.pending == ()


def test_a_vm_that_is_shown_is_not_waited_for(published: Published) -> None:
    published.publish(BASE, seconds_ago=0)
    inventory.decision().expect_accepted("AffinityFilter", BASE.vm_by_id["a"], ["h2"])
    assert inventory.decision().snapshot.unconfirmed == {"a"}
    shown = tuple(
        replace(one, host="h2", status="wait_for_launch") if one.id == "a" else one for one in BASE.vms
    )
    published.publish(replace(BASE, vms=shown), seconds_ago=0)
    assert inventory.wait_until_shown({"a"}).snapshot.unconfirmed == frozenset()
