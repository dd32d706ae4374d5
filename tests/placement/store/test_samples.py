"""Samples: an hour is one row with the worst of it, and counts outlast what they count."""

from __future__ import annotations

from itertools import permutations

import pytest

from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.intents import Cause, IntentKind, Store
from ovirt_placement.store.enforcer.observations import KEPT_SECONDS, Sample, SampleStore
from ovirt_placement.store.sql.access import LeaseLost
from tests.placement.databases import database
from tests.placement.store.conftest import Opening
from tests.stored import prepared

HOUR = 3600.0
YEAR = 366 * 24 * HOUR


@pytest.fixture
def store(opening: Opening) -> Store:
    return opening(Store)


@pytest.fixture
def samples(opening: Opening) -> SampleStore:
    return opening(SampleStore)


def back(url: str, hours: int) -> None:
    """All that was written becomes so much older."""
    with database(url) as connection:
        connection.exec_driver_sql(f"UPDATE samples SET hour = hour - {hours}")
        for table in ("intents", "plans"):
            connection.exec_driver_sql(
                f"UPDATE {table} SET created = created - {hours * HOUR}, updated = updated - {hours * HOUR}"
            )


def end(
    store: Store, name: str, cause: Cause | str | None = "done", kind: IntentKind = IntentKind.MIGRATE_VM
) -> None:
    intent = prepared(store, vm=name, correlation_id=name, kind=kind)
    if cause == "done":
        store.accept(intent.id)
        store.finish(intent.id)
    else:
        store.fail(intent.id, "no", cause)  # type: ignore[arg-type]


def test_of_an_hour_the_worst_stands_whatever_the_order(url: str, samples: SampleStore) -> None:
    for order in permutations([(0, 2, 1, 0), (3, 0, 0, 5), (1, 1, 1, 2)]):
        for hard, soft, survived, lost in order:
            samples.record_violations("c", "blue", hard=hard, soft=soft)
            samples.record_reservation("c", "blue", failures=1, survived=survived, not_restarted=lost)
        found = samples.samples(since_seconds=2 * HOUR).samples
        assert {(one.cluster, one.cluster_name) for one in found} == {("c", "blue")}
        worst = [
            max(getattr(one, name) for one in found if getattr(one, name) is not None)
            for name in ("hard", "soft", "ha_failures", "ha_not_restarted")
        ]
        assert (worst, min(one.ha_survived or 0 for one in found)) == ([3, 2, 1, 5], 0)
        with database(url) as connection:
            connection.exec_driver_sql("DELETE FROM samples")


def test_what_nobody_looked_at_is_not_known(samples: SampleStore) -> None:
    samples.record_reservation("c", "blue", failures=2, survived=2, not_restarted=0)
    (one,) = samples.samples(since_seconds=HOUR).samples
    assert (one.hard, one.soft, one.ha_survived, one.ha_not_restarted) == (None, None, 2, 0)


def counted(found: tuple[Sample, ...]) -> list[tuple[int, int, int]]:
    """Plans, migrations that were done, and that failed, of all hours together."""
    return [tuple(sum(getattr(one, name) for one in found) for name in ("plans", "done", "failed"))]  # type: ignore[misc]


def test_counts_are_the_same_before_and_after_what_they_count_is_forgotten(
    url: str, store: Store, samples: SampleStore
) -> None:
    history = HistoryStore(url, engine="default", patience_seconds=5)
    for name, cause in (
        ("a", "done"),
        ("b", "done"),
        ("c", Cause.TARGET_REFUSED),
        ("d", None),
        ("e", Cause.NEVER_ASKED),
    ):
        end(store, name, cause)
    for number, kind in enumerate(set(IntentKind) - {IntentKind.MIGRATE_VM}):
        end(store, f"action {number}", ("done", Cause.TARGET_REFUSED)[number % 2], kind)
    prepared(store, vm="open", cluster="c", source="h1", target="h2", correlation_id="open")
    for plan in ("p1", "p2", "p2"):
        history.record_plan(plan, "c", {"steps": []})
    samples.record_violations("c", "blue", hard=1, soft=0)
    history.close()
    back(url, 40 * 24)
    end(store, "late")
    before = samples.samples(since_seconds=YEAR).samples
    assert counted(before) == [(2, 3, 2)]
    for _ in range(2):
        store.forget(older_than_seconds=30 * 24 * HOUR)
        assert samples.samples(since_seconds=YEAR).samples == before
    assert counted(samples.samples(since_seconds=HOUR).samples) == [(0, 1, 0)]


def test_samples_themselves_end(url: str, store: Store, samples: SampleStore) -> None:
    samples.record_violations("c", "blue", hard=1, soft=0)
    back(url, int(KEPT_SECONDS / HOUR) - 2)
    store.forget(older_than_seconds=HOUR)
    assert len(samples.samples(since_seconds=KEPT_SECONDS).samples) == 1
    back(url, 4)
    store.forget(older_than_seconds=HOUR)
    assert samples.samples(since_seconds=2 * KEPT_SECONDS).samples == ()


def test_who_leads_no_more_writes_nothing(url: str) -> None:
    former = SampleStore(url, engine="default", patience_seconds=5, epoch=lambda: 3)
    with pytest.raises(LeaseLost):
        former.record_violations("c", "blue", hard=1, soft=0)
    assert former.samples(since_seconds=HOUR).samples == ()
    former.close()
