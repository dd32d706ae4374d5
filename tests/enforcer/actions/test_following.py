"""How a migration is found to have ended, whatever the engine shows and the clocks say."""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_enforcer.actions.following import Following
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.engine.actions import VmState
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.intents import Cause, Intent, IntentState, Store
from ovirt_placement.store.enforcer.leader import HaAnnouncementStore, ViolatedRuleStore
from ovirt_placement.store.enforcer.maintenance import MaintenanceStore
from ovirt_placement.store.keys import KeyStore
from ovirt_placement.store.orders import ALL_CLUSTERS, ApprovalStore, PauseStore
from ovirt_simulator.http.control import Disturbance
from tests.builders import CLUSTER
from tests.clock import Clock
from tests.enforcer.actions import bench as benches
from tests.enforcer.actions.bench import Bench
from tests.enforcer.gates.judging import intent
from tests.examples import examples
from tests.placement.store.conftest import Opening
from tests.stored import prepared, run_of

#: What the engine shows at a look: the VM on its source, on its way, on its target, nowhere, or no such VM;
#: or the request before it still, while the VM stays.
UNANSWERED = ["stays", "stays", "absent", "stopped", "migrating", "migrating", "asked", "asked"]
STATES = {
    "stays": VmState("up", "h1"),
    "asked": VmState("up", "h1"),
    "migrating": VmState("migrating", "h1"),
    "arrived": VmState("up", "h2"),
    "stopped": VmState("down", None),
    "absent": None,
}
SETTLE, TIMEOUT = 10.0, 100.0
SETTINGS = EnforcerSettings(settle_seconds=SETTLE, migration_timeout_seconds=TIMEOUT)


class Shelf:
    """A store of one intent."""

    def __init__(self, state: IntentState) -> None:
        self.intent = intent(state, 0.0, error=None, correlation_id="asked")

    def accept(self, number: int, *, surely: bool = True) -> Intent:
        return self._set(IntentState.ACCEPTED)

    def finish(self, number: int) -> Intent:
        return self._set(IntentState.DONE)

    def fail(self, number: int, error: str | None = None, cause: Cause | None = None) -> Intent:
        return self._set(IntentState.FAILED, error, cause)

    def _set(self, state: IntentState, error: str | None = None, cause: Cause | None = None) -> Intent:
        self.intent = replace(self.intent, state=state, error=error, cause=cause)
        return self.intent


class Looks:
    """Looks at the one migration; the engine's answers are given."""

    def __init__(self, state: IntentState) -> None:
        self.shelf, self.clock = Shelf(state), Clock(1000.0)
        connection, store = cast("EngineConnection", None), cast("Store", self.shelf)
        self._following = Following(connection, store, SETTINGS, self.clock, lambda intent: None)

    def look(self, shown: str) -> Intent | None:
        """The intent, if it has ended."""
        dialogue = cast("Generator[Any, Any, Intent | None]", self._following.follow(self.shelf.intent))
        answers = {"_event_text": None, "read_vm": STATES[shown], "is_working": shown == "asked"}
        question = next(dialogue)
        while True:
            try:
                question = dialogue.send(answers[question.func.__name__])
            except StopIteration as end:
                return cast("Intent | None", end.value)


def given_up_at(shown: list[str]) -> int | None:
    """The second of the first two looks in a row that show nothing of a request without an answer."""
    nothing = [look in ("stays", "absent", "stopped") for look in shown]
    return next((at for at in range(1, len(shown)) if nothing[at - 1] and nothing[at]), None)


@settings(max_examples=examples(200))
@given(st.lists(st.sampled_from(UNANSWERED), min_size=2, max_size=8))
def test_a_request_without_an_answer_is_given_up_after_two_looks_in_a_row_that_show_nothing(
    shown: list[str],
) -> None:
    looks = Looks(IntentState.UNKNOWN)
    assert looks.look(shown[0]) is None
    looks.clock.now += SETTLE
    ended = next((at for at, one in enumerate(shown) if looks.look(one) is not None), None)
    assert ended == given_up_at(shown)
    if ended is not None:
        last, found = shown[ended], looks.shelf.intent
        assert found.state is IntentState.FAILED
        assert (found.cause is Cause.NO_TRACE) is (last == "stays")
        assert (
            found.error == {"stays": None, "stopped": "the VM stopped", "absent": "the VM was removed"}[last]
        )


@given(
    st.lists(st.sampled_from(["stays", "absent", "stopped"]), min_size=1, max_size=4),
    st.floats(0, SETTLE - 0.001),
)
def test_looks_before_the_engine_must_have_shown_it_prove_nothing(shown: list[str], seconds: float) -> None:
    looks = Looks(IntentState.UNKNOWN)
    looks.look(shown[0])
    looks.clock.now += seconds
    assert [looks.look(one) for one in shown] == [None] * len(shown)
    looks.clock.now += SETTLE
    assert looks.look(shown[0]) is None
    assert looks.look(shown[0]) is not None


@settings(max_examples=examples(200))
@given(st.lists(st.sampled_from(["absent", "absent", "migrating"]), min_size=2, max_size=8))
def test_a_vm_that_migrates_is_gone_after_two_looks_in_a_row_without_it(shown: list[str]) -> None:
    looks = Looks(IntentState.ACCEPTED)
    ended = next((at for at, one in enumerate(shown) if looks.look(one) is not None), None)
    gone = (at for at in range(1, len(shown)) if shown[at - 1] == shown[at] == "absent")
    assert ended == next(gone, None)


@given(st.lists(st.sampled_from(["absent", "stays", "asked", "migrating"]), max_size=3))
def test_a_vm_on_its_target_has_arrived_whatever_was_shown_before(shown: list[str]) -> None:
    looks = Looks(IntentState.UNKNOWN)
    looks.look("migrating")
    looks.clock.now += SETTLE
    if any(looks.look(one) is not None for one in shown):
        return
    assert looks.look("arrived") is None
    assert looks.shelf.intent.state is IntentState.ACCEPTED
    ended = looks.look("arrived")
    assert ended is not None
    assert ended.state is IntentState.DONE


def test_what_another_has_given_up_is_no_arrival_of_the_vm_that_it_sent_again(bench: Bench) -> None:
    """Who was stopped amid a look at a request without an answer sees the VM on its target when it wakes."""
    bench.server.disturbances.add(Disturbance(method="POST", path="/migrate", drop="request"))
    with bench.connected() as connection:
        executor = bench.executor(connection)
        with pytest.raises(EngineAway):
            executor.begin(bench.task(100.0))
        (lost,) = bench.store.open_intents()
        bench.store.fail(lost.id, None, Cause.NO_TRACE)
        bench.engine.vms.migrate("a", host_id="h2")
        bench.pass_time(60.0)
        executor.follow([replace(lost, age_seconds=60.0)])
    assert [one.state for one in bench.intents()] == [IntentState.FAILED]


@pytest.mark.parametrize("back", [False, True], ids=["stopped", "moved back"])
def test_what_arrived_between_two_looks_is_done_whatever_others_do_with_the_vm_then(
    bench: Bench, back: bool
) -> None:
    with bench.connected() as connection:
        executor = bench.executor(connection)
        executor.begin(bench.task(100.0))
        bench.pass_time(30.0)
        bench.engine.affinity_groups.remove("pair")
        if back:
            bench.engine.vms.migrate("a", host_id="h1")
        else:
            bench.engine.vms.stop("a")
        for _ in range(2):
            bench.pass_time(30.0)
            executor.follow(bench.store.open_intents())
            assert len([*executor.answers()]) <= 1
    assert [one.state for one in bench.intents()] == [IntentState.DONE]


@pytest.mark.parametrize(("seconds", "ends"), [(TIMEOUT - 1, False), (TIMEOUT, True)])
def test_a_request_before_the_engine_is_waited_for_no_longer_than_a_migration(
    seconds: float, ends: bool
) -> None:
    looks = Looks(IntentState.UNKNOWN)
    looks.look("asked")
    looks.clock.now += seconds
    assert [looks.look("asked") is not None for _ in range(2)] == [False, ends]


HOUR = 3600.0


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with benches.bench(tmp_path) as made:
        yield made


@pytest.mark.system
def test_a_lost_request_is_settled_and_the_cooldown_ends(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.server.disturbances.add(Disturbance(method="POST", path="/migrate", drop="request"))
    with bench.enforcing() as daemon:
        bench.run(daemon, 2.0)
        assert [intent.state for intent in bench.store.open_intents()] == [IntentState.UNKNOWN]
        bench.set_back = HOUR
        bench.run(daemon, 40.0)
        assert bench.store.open_intents() == ()
        # The cooldown of 10 minutes holds it, and no longer.
        bench.run(daemon, 500.0)
        assert bench.begun() == []
        bench.run(daemon, 720.0)
    assert bench.begun() == ["a"]
    assert "the database's clock was set back" in caplog.text


def test_no_age_of_a_migration_is_negative(bench: Bench) -> None:
    prepared(bench.store, vm="a", cluster=CLUSTER, source="h1", target="h2", correlation_id="asked")
    bench.set_back = HOUR
    (intent,) = bench.store.open_intents()
    assert intent.age_seconds == 0.0


def test_all_that_is_remembered_counts_as_of_now(bench: Bench, opening: Opening) -> None:
    pauses, approvals = opening(PauseStore), opening(ApprovalStore)
    violated, runs, said = opening(ViolatedRuleStore), opening(MaintenanceStore), opening(HaAnnouncementStore)
    bench.now = 100.0
    runs.request(run_of("h1"))
    for number in (2, 1):  # they are drawn
        said.announce(number=number, cluster=CLUSTER, kind="ha_alert", facts={}, settles=False)
        bench.now += 20.0
    pauses.pause(CLUSTER, cluster_name=CLUSTER, reason="", set_by="me", seconds=60)
    pauses.resume(ALL_CLUSTERS, set_by="me")
    approvals.order(CLUSTER, "plan", (), set_by="me")
    violated.record_violated(CLUSTER, ["rule"], cycle_seconds=10, enough=3)
    plans, keys = opening(HistoryStore), opening(KeyStore)
    plans.record_plan("made", CLUSTER, {})
    plans.record_held("made", {1: ("pause", "paused")})
    keys.mark_missing(["v"])
    bench.set_back = HOUR
    assert bench.store.settle_clock()
    assert not bench.store.settle_clock()
    assert approvals.approvals()[0].age_seconds == pytest.approx(0, abs=0.01)
    assert pauses.resumed()[ALL_CLUSTERS] == pytest.approx(0, abs=0.01)
    bench.now += 10
    violated.record_violated(CLUSTER, ["rule"], cycle_seconds=10, enough=3)
    assert violated.cycles() == {"rule": 2}
    assert len(pauses.pauses()) == 1
    assert [one.seconds for run in runs.runs() for one in run.hosts] == [pytest.approx(10, abs=0.01)]
    assert [one.age_seconds for one in runs.runs()] == [pytest.approx(10, abs=0.01)]
    found = [(one.number, one.age_seconds) for one in said.announcements()]
    assert found == [(2, pytest.approx(30, abs=0.01)), (1, pytest.approx(10, abs=0.01))]
    assert keys.mark_missing(["v"]) == {"v": pytest.approx(10, abs=0.01)}
    bench.now += 51
    assert pauses.pauses() == ()
    assert plans.plans(since_seconds=60) == ()
    assert [one.id for one in plans.plans(since_seconds=65)] == ["made"]
