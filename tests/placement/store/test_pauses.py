"""A pause is in force until it ends or is taken back, and of one cluster or of all."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from ovirt_placement.store.enforcer.intents import IntendedMigration, Store
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.orders import ALL_CLUSTERS, Paused, PauseStore
from tests.placement.store.conftest import Opening


@pytest.fixture
def store(opening: Opening) -> PauseStore:
    return opening(PauseStore)


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


def test_what_is_taken_back_is_reported_and_when(store: PauseStore) -> None:
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


@pytest.mark.parametrize("where", ["c1", "C1", ALL_CLUSTERS, "c2"])
def test_no_intent_is_written_of_what_is_paused(store: PauseStore, url: str, where: str) -> None:
    pause(store, where)
    intents = Store(url, engine="default", patience_seconds=30)
    planned = IntendedMigration(vm="v1", cluster="c1", source="h1", target="h2", correlation_id="one")
    if where == "c2":
        assert intents.prepare([planned], paused_by=("c1", "C1"))
        intents.check_pauses(("c1", "C1"))
    else:
        for refused in (
            lambda: intents.prepare([planned], paused_by=("c1", "C1")),
            lambda: intents.check_pauses(("c1", "C1")),
        ):
            with pytest.raises(Paused, match="eve paused"):
                refused()
        assert intents.open_intents() == ()
    intents.close()


def test_who_pauses_waits_for_the_intent_that_is_being_written(url: str) -> None:
    """So the user who paused sees every migration that leaves nevertheless."""
    leases = LeaseStore(url, engine="default", patience_seconds=30)
    epoch = leases.take_lease("one", 600.0)
    store, intents, reader = (
        part(url, engine="default", patience_seconds=30) for part in (PauseStore, Store, Store)
    )
    seen: list[str] = []

    def pause_and_look() -> None:
        pause(store, "c1")
        seen.extend(intent.vm for intent in reader.open_intents())

    pausing = threading.Thread(target=pause_and_look)

    def planned() -> Iterator[IntendedMigration]:
        pausing.start()
        pausing.join(0.5)  # as long as it would take if it did not wait
        yield IntendedMigration(vm="v1", cluster="c1", source="h1", target="h2", correlation_id="one")

    intents.prepare(planned(), epoch=epoch, paused_by=("c1",))
    pausing.join()
    assert seen == ["v1"]
    for part in (leases, store, intents, reader):
        part.close()
