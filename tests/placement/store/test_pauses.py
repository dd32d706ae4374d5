"""A pause is in force until it ends or is taken back, and of one cluster or of all."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from ovirt_placement.store.pauses import ALL_CLUSTERS, PauseStore


@pytest.fixture
def store(url: str) -> Iterator[PauseStore]:
    opened = PauseStore(url, engine="default", patience_seconds=30)
    yield opened
    opened.close()


def pause(store: PauseStore, where: str, reason: str = "", seconds: float | None = None) -> None:
    store.pause(where, cluster_name=where.upper(), reason=reason, set_by="eve", seconds=seconds)


def test_pauses_say_who_when_why_and_until(store: PauseStore) -> None:
    before = time.time()
    pause(store, "c2", "storage", 3600.0)
    pause(store, "c1")
    pause(store, ALL_CLUSTERS)
    everywhere, first, second = store.pauses()
    assert (everywhere.cluster, everywhere.cluster_name) == ("", "")
    assert (first.cluster_name, first.reason, first.until) == ("C1", "", None)
    assert (second.cluster, second.reason, second.set_by) == ("c2", "storage", "eve")
    assert before - 1 <= second.set_at <= time.time() + 1
    assert second.until == pytest.approx(second.set_at + 3600, abs=1)


def test_the_last_word_on_a_cluster_counts(store: PauseStore) -> None:
    pause(store, "c1", "first")
    pause(store, "c1", "second", 60)
    (only,) = store.pauses()
    assert (only.reason, only.until is None) == ("second", False)


def test_a_pause_ends_by_itself(store: PauseStore) -> None:
    pause(store, "c1", seconds=-1)
    assert store.pauses() == ()
    assert store.resume("c1", set_by="adam") is None


def test_what_is_taken_back_is_told_and_when(store: PauseStore) -> None:
    pause(store, "c1", "storage")
    pause(store, ALL_CLUSTERS)
    lifted = store.resume("c1", set_by="adam")
    assert lifted is not None
    assert (lifted.cluster, lifted.reason, lifted.set_by) == ("c1", "storage", "eve")
    assert [one.cluster for one in store.pauses()] == [ALL_CLUSTERS]
    assert store.resume("c1", set_by="adam") is None
    assert store.resume(ALL_CLUSTERS, set_by="adam") is not None
    assert store.pauses() == ()
    ages = store.resumed()
    assert ages.keys() == {"c1", ALL_CLUSTERS}
    assert all(0 <= age < 60 for age in ages.values())
