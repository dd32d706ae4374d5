"""A decision and what came of it stand together afterwards, for as long as they are to be remembered."""

from __future__ import annotations

from typing import Any

import pytest

from ovirt_placement.store.enforcer.history import HistoryStore, RuleAfterwards, StepOutcome
from ovirt_placement.store.enforcer.intents import Cause, Store
from tests.placement.databases import database
from tests.placement.store.conftest import Opening
from tests.stored import prepared

PAIR = {"id": "g1", "name": "pair"}


def step(vm: str, **fields: Any) -> dict[str, Any]:
    return {"vms": [{"id": vm, "name": vm}], "to": {"id": "h2", "name": "h2"}, "repairs": [PAIR], **fields}


def plan(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"steps": list(steps), "remaining": []}


@pytest.fixture
def store(opening: Opening) -> Store:
    return opening(Store)


@pytest.fixture
def history(opening: Opening) -> HistoryStore:
    return opening(HistoryStore)


def prepare(store: Store, vm: str, plan_id: str | None, number: int | None = 1) -> int:
    return prepared(
        store, vm=vm, cluster="c", source="h1", target="h2", correlation_id=vm, plan=plan_id, step=number
    ).id


def aged(url: str, seconds: float) -> None:
    with database(url) as connection:
        for table in ("intents", "plans", "held_steps"):
            connection.exec_driver_sql(
                f"UPDATE {table} SET created = created - {seconds}, updated = updated - {seconds}"
            )


def test_a_plan_is_read_with_its_migrations_and_what_held_it(store: Store, history: HistoryStore) -> None:
    document = plan(step("v1"), step("v2"))
    history.record_plan("p1", "c", document, epoch=3)
    history.record_held("p1", {2: ("window", "only at night")})
    history.record_held("p1", {2: ("window", "only at weekends"), 1: ("mode", "observe")})
    store.fail(prepare(store, "v1", "p1"), "no", Cause.TARGET_REFUSED)
    (found,) = history.plans(since_seconds=60)
    assert (found.id, found.cluster, found.epoch, found.document) == ("p1", "c", 3, document)
    assert [(one.vm, one.step, one.state, one.reason) for one in found.migrations] == [
        ("v1", 1, "failed", "refused: no")
    ]
    assert [(one.step, one.gate, one.reason, one.times) for one in found.held] == [
        (1, "mode", "observe", 1),
        (2, "window", "only at weekends", 2),
    ]
    assert history.plans_named("p") == (found,)
    assert history.plans_named("p_") == history.plans_named("%") == ()


def test_a_plan_that_is_made_again_is_one_and_says_when_it_was_first(history: HistoryStore, url: str) -> None:
    history.record_plan("p1", "c", plan(step("v1")))
    aged(url, 100)
    history.record_plan("p2", "c", plan())
    aged(url, 1)  # SQLite's clock counts milliseconds
    history.record_plan("p1", "c", plan(step("v1", seconds=5)), epoch=2)
    other, again = history.plans(since_seconds=50)
    assert (other.id, again.id, again.epoch) == ("p2", "p1", 2)
    assert again.updated - again.created >= 100
    assert again.document == plan(step("v1", seconds=5))


def test_an_old_plan_is_listed_while_anything_comes_of_it(
    store: Store, history: HistoryStore, url: str
) -> None:
    for name in ("carried out", "held", "forgotten"):
        history.record_plan(name, "c", plan(step("v1")))
    aged(url, 100)
    prepare(store, "v1", "carried out")
    history.record_held("held", {1: ("mode", "observe")})
    assert {found.id for found in history.plans(since_seconds=50)} == {"carried out", "held"}


def test_steps_that_ended_wait_for_their_outcome_until_all_their_vms_have(
    store: Store, history: HistoryStore
) -> None:
    history.record_plan("p1", "c", plan(step("v1"), step("v2")))
    first, second = prepare(store, "v1", "p1", 2), prepare(store, "v2", "p1", 2)
    store.finish(store.accept(first).id)
    assert history.ended_steps() == ()
    store.finish(store.accept(second).id)
    (ended,) = history.ended_steps()
    assert (ended.plan, ended.step, ended.cluster, ended.done) == ("p1", 2, "c", True)
    assert ended.document == step("v2")
    outcome = StepOutcome(1, (RuleAfterwards("g1", "pair", True),))
    history.record_outcome(["v1", "v2"], outcome)
    assert history.ended_steps() == ()
    (found,) = history.plans(since_seconds=60)
    assert [migration.outcome for migration in found.migrations] == [outcome, outcome]


@pytest.mark.parametrize(("plan_id", "number"), [(None, None), ("unknown", 1), ("p1", 7)])
def test_a_migration_without_a_known_step_waits_for_none(
    store: Store, history: HistoryStore, plan_id: str | None, number: int | None
) -> None:
    history.record_plan("p1", "c", plan(step("v1")))
    store.fail(prepare(store, "v1", plan_id, number), "why")
    assert history.ended_steps() == ()
    unplanned = [migration.vm for migration in history.unplanned(since_seconds=60)]
    assert unplanned == ([] if plan_id == "p1" else ["v1"])


def test_all_is_forgotten_together_and_what_is_open_never(
    store: Store, history: HistoryStore, url: str
) -> None:
    history.record_plan("old", "c", plan(step("v1")))
    history.record_held("old", {1: ("mode", "observe")})
    store.fail(prepare(store, "v1", "old"), "why")
    prepare(store, "v2", "old")
    aged(url, 100)
    history.record_plan("new", "c", plan(step("v1")))
    assert store.forget(older_than_seconds=50) == 1
    assert [found.id for found in history.plans(since_seconds=1e9)] == ["new"]
    assert [migration.vm for migration in history.unplanned(since_seconds=1e9)] == ["v2"]
    with database(url) as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM held_steps").scalar() == 0
