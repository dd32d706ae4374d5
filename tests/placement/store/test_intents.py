"""Intents and history: each transition counts once, and a decision stands with what came of it."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.store.enforcer.history import HistoryStore, RuleAfterwards, StepOutcome
from ovirt_placement.store.enforcer.intents import (
    Cause,
    ImpossibleTransition,
    IntendedMigration,
    Intent,
    IntentState,
    Store,
)
from ovirt_placement.store.sql.schema import VERSION
from ovirt_service.errors import UserError
from tests.placement.databases import database
from tests.placement.store.conftest import Opening, at_once
from tests.stored import intent_of, prepared

PREPARED, ACCEPTED, DONE, FAILED, UNKNOWN = IntentState
#: What may follow what.
ALLOWED = {
    (PREPARED, ACCEPTED), (PREPARED, FAILED), (PREPARED, UNKNOWN),
    (ACCEPTED, DONE), (ACCEPTED, FAILED), (ACCEPTED, UNKNOWN),
    (UNKNOWN, ACCEPTED), (UNKNOWN, DONE), (UNKNOWN, FAILED),
    (FAILED, ACCEPTED),
}  # fmt: skip


def moves(store: Store, intent_id: int) -> dict[IntentState, Callable[[], Intent]]:
    return {
        ACCEPTED: lambda: store.accept(intent_id),
        DONE: lambda: store.finish(intent_id),
        FAILED: lambda: store.fail(intent_id, "why"),
        UNKNOWN: lambda: store.lose(intent_id, "why"),
    }


def aged(url: str, seconds: float) -> None:
    """Let time pass, for what the database remembers."""
    with database(url) as connection:
        for table in ("intents", "plans", "held_steps"):
            connection.exec_driver_sql(
                f"UPDATE {table} SET created = created - {seconds}, updated = updated - {seconds}"
            )


def answers_of_four(url: str, ask: Callable[[Store], object]) -> list[object]:
    """What four get who ask a store of their own at the same moment; for some it may be an exception."""

    def come(number: int) -> object:
        with closing(Store(url, engine="default", patience_seconds=10)) as mine:
            return ask(mine)

    return at_once(4, come)


def test_an_intent_lives_from_before_the_request_to_the_end(store: Store, opening: Opening) -> None:
    before = prepared(store, memory_mb=512)
    assert (before.state, before.open, before.blocking, before.memory_mb) == (PREPARED, True, True, 512)
    assert store.accept(before.id).state is ACCEPTED
    assert [intent.id for intent in store.open_intents()] == [before.id]
    ended = store.finish(before.id)
    assert (ended.state, ended.open, ended.blocking) == (DONE, False, False)
    assert before.created == ended.created <= ended.updated
    assert store.open_intents() == ()
    again = opening(Store)
    assert [found.updated for found in again.history(within_seconds=60)] == [ended.updated]


@pytest.mark.parametrize("before", IntentState)
@pytest.mark.parametrize("after", [state for state in IntentState if state is not PREPARED])
def test_only_what_may_follow_follows(tmp_path: Path, before: IntentState, after: IntentState) -> None:
    with closing(Store(f"sqlite:///{tmp_path}/store.db", engine="default")) as store:
        intent = prepared(store)
        steps = moves(store, intent.id)
        if before is DONE:
            store.accept(intent.id)
        if before is not PREPARED:
            steps[before]()
        if (before, after) in ALLOWED:
            assert steps[after]().state is after
            return
        with pytest.raises(ImpossibleTransition, match=f"is {before} and cannot become {after}"):
            steps[after]()
        assert intent_of(store, "one").state is before


def test_of_two_who_accept_only_one_succeeds_and_what_was_never_written_has_no_future(
    store: Store, url: str
) -> None:
    with pytest.raises(ImpossibleTransition, match="intent 7 does not exist"):
        store.accept(7)
    intent = prepared(store)
    answers = answers_of_four(url, lambda mine: mine.accept(intent.id).state)
    assert answers.count(ACCEPTED) == 1
    assert sum(isinstance(answer, ImpossibleTransition) for answer in answers) == 3


def test_what_is_not_confirmed_blocks_for_30_seconds(store: Store, url: str) -> None:
    prepared(store, "a", "a")
    store.lose(prepared(store, "b", "b").id, "no answer")
    store.accept(prepared(store, "c", "c").id)
    for seconds, blocking in ((0, "abc"), (29, "abc"), (1.5, "c")):
        aged(url, seconds)
        assert [intent.vm for intent in store.blocking_intents()] == [*blocking]
    assert [intent.vm for intent in store.open_intents()] == [*"abc"]


def test_history_holds_what_ended_lately(store: Store, url: str) -> None:
    store.fail(prepared(store, "a", "a").id, "no host", Cause.TARGET_REFUSED)
    aged(url, 100)
    store.finish(store.accept(prepared(store, "b", "b").id).id)
    prepared(store, "c", "c")
    assert [intent.vm for intent in store.history(within_seconds=50)] == ["b"]
    assert [one.reason for one in store.history(within_seconds=150)] == ["refused: no host", None]
    assert store.forget(older_than_seconds=50) == 1
    assert [intent.vm for intent in store.history(within_seconds=150)] == ["b"]
    assert [intent.vm for intent in store.open_intents()] == ["c"]


def test_the_tables_are_made_once_and_a_newer_schema_is_left_alone(url: str, opening: Opening) -> None:
    assert answers_of_four(url, lambda mine: list(mine.open_intents())) == [[], [], [], []]
    with database(url) as connection:
        assert connection.exec_driver_sql("SELECT version FROM schema_version").scalars().all() == [VERSION]
        connection.exec_driver_sql("UPDATE schema_version SET version = version + 1")
    newer = f"has schema version {VERSION + 1}, and this release knows {VERSION}: upgrade"
    with pytest.raises(UserError, match=newer):
        opening(Store).open_intents()


def test_a_fork_has_connections_of_its_own(store: Store) -> None:
    prepared(store)
    process = multiprocessing.get_context("fork").Process(target=lambda: store.accept(1))
    process.start()
    process.join(30)
    assert process.exitcode == 0
    assert [intent.state for intent in store.open_intents()] == [ACCEPTED]


def test_the_migrations_of_one_request_are_written_down_together_or_not_at_all(store: Store) -> None:
    first, second = (
        IntendedMigration(vm=vm, cluster="c", source="h1", target="h2", correlation_id=vm) for vm in "ab"
    )

    def dies_between() -> Iterator[IntendedMigration]:
        yield first
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.prepare(dies_between())
    assert store.open_intents() == ()
    written = store.prepare([first, second])
    assert [intent.id for intent in store.open_intents()] == [intent.id for intent in written]


PAIR = {"id": "g1", "name": "pair"}


def step(vm: str, **fields: Any) -> dict[str, Any]:
    return {"vms": [{"id": vm, "name": vm}], "to": {"id": "h2", "name": "h2"}, "repairs": [PAIR], **fields}


def plan(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"steps": list(steps), "remaining": []}


def prepare(store: Store, vm: str, plan_id: str | None, number: int | None = 1) -> int:
    return prepared(store, vm, vm, plan=plan_id, step=number).id


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
