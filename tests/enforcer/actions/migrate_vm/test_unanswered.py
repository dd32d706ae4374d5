"""A request without an answer counts in every limit, and is given up only where nothing shows of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ovirt_enforcer.actions.migrate_vm.executor import Executor
from ovirt_placement.engine.writing.migration import migrate
from ovirt_placement.model import Snapshot
from ovirt_placement.store.causes import Cause
from ovirt_placement.store.intents import Intent, IntentState
from ovirt_service.errors import UserError
from ovirt_simulator.core.entities import Caller
from ovirt_simulator.http.disturbances import Disturbance
from tests.builders import CLUSTER
from tests.enforcer.actions.migrate_vm import bench as benches
from tests.enforcer.actions.migrate_vm.bench import STATE, Bench
from tests.stored import prepared

HOUR = 3600.0


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with benches.bench(tmp_path) as made:
        yield made


class Looks:
    """Looks at migrations, one at a time."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def follow(self, intent: Intent) -> Intent | None:
        """The migration, if it has ended."""
        self._executor.follow([intent])
        ended = [one for _, outcome in self._executor.answers() for one in outcome.result()]
        return next(iter(ended), None)

    def reconsider(self, history: list[Intent], state: Snapshot) -> None:
        self._executor.reconsider(history, state)
        assert [outcome.result() for _, outcome in self._executor.answers()] in ([], [()])


def unanswered(bench: Bench) -> Intent:
    """A migration of a to h2 that was asked for, and that nobody answered."""
    made = prepared(bench.store, vm="a", cluster=CLUSTER, source="h1", target="h2", correlation_id="asked")
    return bench.store.lose(made.id, "no answer")


@pytest.mark.system
@pytest.mark.parametrize("what", [{"status": 500}, {"drop": "request"}], ids=["status 500", "no answer"])
def test_whatever_is_never_answered_is_asked_ever_more_seldom(bench: Bench, what: dict[str, Any]) -> None:
    asked = Disturbance(method="POST", path="/migrate", times=1000, **what)
    bench.server.disturbances.add(asked)
    with bench.enforcing() as daemon:
        bench.run(daemon, HOUR)
    (left,) = bench.server.disturbances.waiting
    # After 10, 20 and (not yet) 40 minutes.
    assert 1000 - (left.times or 0) == 3
    assert [intent.state for intent in bench.intents()] == [IntentState.FAILED] * 3
    assert all(intent.cause is Cause.NO_TRACE for intent in bench.intents())


@pytest.mark.parametrize("status", [503, 500], ids=["the log-in is away", "the log-in is none"])
def test_what_surely_never_left_is_not_counted(bench: Bench, status: int) -> None:
    with bench.connected() as connection:
        bench.server.disturbances.add(Disturbance(path="/sso/oauth/token", status=status))
        with pytest.raises(UserError):
            bench.executor(connection).begin(bench.task(fresh_until=1.0))
    assert [intent.cause for intent in bench.intents()] == [Cause.NEVER_ASKED]


def test_a_vm_on_its_target_has_arrived_though_no_event_says_so(bench: Bench) -> None:
    bench.engine.vms.migrate("a", host_id="h2")
    bench.pass_time(60)
    lost = unanswered(bench)
    with bench.connected() as connection:
        following = Looks(bench.executor(connection))
        assert following.follow(lost) is None  # it is settled only after a while
        bench.pass_time(11)
        following.follow(lost)
        (known,) = bench.store.open_intents()
        ended = following.follow(known)
    assert ended is not None
    assert ended.state is IntentState.DONE


def test_what_the_engine_still_works_on_is_not_given_up(bench: Bench) -> None:
    """Its scheduler may wait for other migrations, and for an external filter, before any event reports."""
    lost = unanswered(bench)
    job = bench.engine.jobs.add("Migrating VM a", caller=Caller(correlation_id="asked"))
    bench.engine.jobs.add("Migrating VM a", caller=Caller(correlation_id="another"))
    with bench.connected() as connection:
        following = Looks(bench.executor(connection))
        assert following.follow(lost) is None
        bench.pass_time(HOUR / 4)
        assert [following.follow(lost) for _ in range(3)] == [None] * 3
        bench.engine.jobs.end(job.id, success=False)
        assert following.follow(lost) is None
        ended = following.follow(lost)
    assert ended is not None
    assert ended.cause is Cause.NO_TRACE


def test_a_job_that_never_ends_is_waited_for_no_longer_than_a_migration(bench: Bench) -> None:
    lost = unanswered(bench)
    bench.engine.jobs.add("Migrating VM a", caller=Caller(correlation_id="asked"))
    with bench.connected() as connection:
        following = Looks(bench.executor(connection))
        assert following.follow(lost) is None
        bench.pass_time(HOUR)
        assert following.follow(lost) is None
        assert following.follow(lost) is not None


def test_what_begins_after_it_was_given_up_is_followed_again(bench: Bench) -> None:
    lost = unanswered(bench)
    with bench.connected() as connection:
        following = Looks(bench.executor(connection))
        assert following.follow(lost) is None  # it is settled only after a while
        bench.pass_time(11)
        assert following.follow(lost) is None  # one look proves nothing
        ended = following.follow(lost)
        assert ended is not None
        assert ended.cause is Cause.NO_TRACE
        following.reconsider([ended], STATE)
        assert bench.store.open_intents() == ()

        migrate(connection, "a", "h2", lost.correlation_id)
        bench.pass_time(3)
        following.reconsider([ended], bench.engine.snapshot())
        (known,) = bench.store.open_intents()
        assert known.state is IntentState.ACCEPTED


def test_a_vm_that_is_not_found_once_is_not_gone(bench: Bench) -> None:
    with bench.connected() as connection:
        executor = bench.executor(connection)
        (accepted,) = executor.begin(bench.task(fresh_until=1.0))
        bench.server.disturbances.add(Disturbance(path="/vms/a$", status=404))
        with suppress(UserError):  # it is not the engine's own 404
            assert Looks(executor).follow(accepted) is None
        assert [intent.state for intent in bench.store.open_intents()] == [IntentState.ACCEPTED]
        bench.pass_time(60)
        ended = Looks(executor).follow(accepted)
    assert ended is not None
    assert ended.state is IntentState.DONE


def test_a_vm_that_is_not_found_twice_is(bench: Bench) -> None:
    made = prepared(bench.store, vm="gone", cluster=CLUSTER, source="h1", target="h2", correlation_id="asked")
    accepted = bench.store.accept(made.id)
    with bench.connected() as connection:
        following = Looks(bench.executor(connection))
        assert following.follow(accepted) is None
        ended = following.follow(accepted)
    assert ended is not None
    assert ended.error == "the VM was removed"
