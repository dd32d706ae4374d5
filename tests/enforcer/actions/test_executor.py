"""Requests for migrations: none on what is too old, and what becomes of those without an answer."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ovirt_enforcer.actions.executor import Executor, Stale
from ovirt_enforcer.service.daemon import Daemon, Pace
from ovirt_placement.engine.actions import migrate
from ovirt_placement.engine.connection.log_ins import SingleSignOn
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.store.enforcer.intents import Cause, Intent, IntentState, Store
from ovirt_placement.store.orders import Paused
from ovirt_placement.store.sql.access import LeaseLost
from ovirt_service.errors import UserError
from ovirt_simulator.core.backend import MigrationFault
from ovirt_simulator.http.control import Disturbance
from tests.builders import CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.enforcer.actions import bench as benches
from tests.enforcer.actions.bench import STATE, Bench
from tests.stored import prepared


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with benches.bench(tmp_path) as made:
        yield made


def at_next_log_in(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> None:
    """Let something happen while the next log-in takes its time, as if the process were stopped there."""
    log_in, due = SingleSignOn.log_in, [happens]

    def slow(self: SingleSignOn) -> str:
        token = log_in(self)
        if due:
            due.pop()()
        return token

    monkeypatch.setattr(SingleSignOn, "log_in", slow)


@pytest.mark.parametrize(
    ("happens", "error", "left"),
    [
        (lambda bench: bench.pass_time(20), Stale, Cause.NEVER_ASKED),
        # The next leader finds out what came of it.
        (lambda bench: setattr(bench, "leads", False), LeaseLost, IntentState.PREPARED),
        (Bench.pause, Paused, Cause.NEVER_ASKED),
    ],
    ids=["it took long", "the lease was lost", "a pause"],
)
def test_a_step_is_not_sent_after_a_log_in_during_which_things_changed(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[Bench], None],
    error: type[Exception],
    left: Cause | IntentState,
) -> None:
    with bench.connected() as connection:
        connection.get("/vms")
        bench.server.tokens.revoke_all()
        at_next_log_in(monkeypatch, lambda: happens(bench))
        with pytest.raises(error):
            bench.executor(connection).begin(bench.task(fresh_until=3.0))
        assert [intent.cause or intent.state for intent in bench.intents()] == [left]
        # Nothing waits within the connection, to be sent with what comes next.
        connection.get("/vms")
    assert bench.begun() == []


def test_nothing_begins_after_a_pause_that_came_since_the_gates_were_asked(bench: Bench) -> None:
    with bench.connected() as connection:
        admitted = bench.task(fresh_until=30.0)
        bench.pause()
        with pytest.raises(Paused, match="eve paused everything"):
            bench.executor(connection).begin(admitted)
    assert (bench.begun(), bench.intents()) == ([], [])


def test_what_somebody_repaired_meanwhile_is_left_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session ends just before the request, and an administrator is faster than the next log-in."""
    prepare = Store.prepare

    def repair() -> None:
        bench.engine.affinity_groups.edit("pair", vms=["b"])
        bench.pass_time(20)

    def session_ends(self: Store, migrations: Any, **how: Any) -> Any:
        bench.server.tokens.revoke_all()
        at_next_log_in(monkeypatch, repair)
        return prepare(self, migrations, **how)

    monkeypatch.setattr(Store, "prepare", session_ends)
    with bench.enforcing() as daemon:
        bench.run(daemon, 300.0)
    assert bench.intents()
    assert bench.begun() == []


def test_a_reading_that_was_interrupted_is_too_old_and_one_of_a_slow_engine_is_not() -> None:
    ends = iter((1.0, 30.0, 50.0))
    pace = Pace(lambda: next(ends))
    assert [pace.fresh_until(began) for began in (0.0, 10.0, 30.0)] == [4.0, 13.0, 53.0]


MUST_GO = snapshot(
    host("h0"),
    host("h1"),
    *(vm(name, "h1") for name in "abc"),
    group("together", TOGETHER, "a b c"),
    group("there", vms="a b c", hosts_rule=TOGETHER, hosts="h0"),
)


@pytest.mark.system
def test_what_went_is_followed_to_its_end_and_what_did_not_is_a_refusal(tmp_path: Path) -> None:
    settings = {"mode": "enforce", "interval_seconds": 30}
    with benches.bench(tmp_path, MUST_GO, settings) as made, made.enforcing() as daemon:
        made.engine.faults.expect(MigrationFault(refuse=True), identity="b")
        made.run(daemon, 600.0)
        ended = made.intents()
        assert made.engine.snapshot().vm_by_id["a"].host == "h0"
    assert not any(intent.open for intent in ended)
    assert [intent.state for intent in ended if intent.vm == "a"] == [IntentState.DONE]
    first_of_b = next(intent for intent in ended if intent.vm == "b")
    assert first_of_b.cause is Cause.TARGET_REFUSED


HOUR = 3600.0


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


#: Much longer than all that a test does; a test that ends does not wait for it.
LONG = 300.0
OTHERS = ("b", "c", "d", "e")


def pairs() -> Snapshot:
    """Five VMs, each of which is to join its partner on another host; a is the first to be asked for."""
    names = ("a", *OTHERS)
    return snapshot(
        *(host(name) for name in ("h1", "h2", "h3")),
        *(vm(name, "h1") for name in names),
        *(vm(f"{name}2", "h2", migratable=False) for name in names),
        *(group(f"pair-{name}", TOGETHER, f"{name} {name}2", priority=9.0 * (name == "a")) for name in names),
    )


@pytest.fixture
def pairs_bench(tmp_path: Path) -> Iterator[Bench]:
    with benches.bench(tmp_path, pairs()) as made:
        yield made


def run_until_repaired(pairs_bench: Bench, daemon: Daemon) -> None:
    for _ in range(60):
        pairs_bench.run(daemon, pairs_bench.now + 5.0)
        violated = {
            name for one in find_violations(pairs_bench.engine.snapshot(), CLUSTER) for name in one.groups
        }
        if violated <= {"pair-a"} and {intent.vm for intent in pairs_bench.store.open_intents()} <= {"a"}:
            return
    raise AssertionError(f"not repaired: {violated}")


def take_late_answer(pairs_bench: Bench, daemon: Daemon) -> None:
    """What the engine held back until now comes, and counts."""
    pairs_bench.server.disturbances.clear()
    while pairs_bench.store.open_intents() or find_violations(pairs_bench.engine.snapshot(), CLUSTER):
        pairs_bench.run(daemon, pairs_bench.now + 5.0)
        assert pairs_bench.now < 3600
    assert sorted(pairs_bench.begun()) == ["a", *OTHERS]
    assert {intent.state for intent in pairs_bench.intents()} == {IntentState.DONE}


@pytest.mark.system
@pytest.mark.parametrize("method", ["POST", None], ids=["the request", "all about it"])
def test_a_migration_that_is_asked_for_and_not_answered_holds_up_no_other(
    pairs_bench: Bench, method: str | None
) -> None:
    hung = Disturbance(method=method, path="/vms/a(/|$)", delay_seconds=LONG, times=None)
    pairs_bench.server.disturbances.add(hung)
    with pairs_bench.enforcing() as daemon:
        run_until_repaired(pairs_bench, daemon)
        assert sorted(pairs_bench.begun()) == [*OTHERS]  # the engine has not even begun with a
        open_intents = pairs_bench.store.open_intents()
        assert [(intent.vm, intent.state) for intent in open_intents] == [("a", IntentState.PREPARED)]
        take_late_answer(pairs_bench, daemon)


@pytest.mark.system
def test_a_migration_that_the_engine_does_not_show_holds_up_no_other(pairs_bench: Bench) -> None:
    hung = Disturbance(method="GET", path="/vms/a(/|$)", delay_seconds=LONG, times=None)
    pairs_bench.server.disturbances.add(hung)
    with pairs_bench.enforcing() as daemon:
        run_until_repaired(pairs_bench, daemon)
        assert set(pairs_bench.begun()) == {"a", *OTHERS}
        assert "a" in {intent.vm for intent in pairs_bench.store.open_intents()}
        take_late_answer(pairs_bench, daemon)
