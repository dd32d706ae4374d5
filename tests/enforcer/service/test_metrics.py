"""Health, trends, and how cycles end."""

import json
import logging
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from ovirt_enforcer.service.leader import Leader
from ovirt_enforcer.service.metrics import Cycles, EnforcerMetrics, Sampler
from ovirt_enforcer.watchers.verdict import ReservationState, ReservationVerdict
from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.inventory.decision import NoSnapshot
from ovirt_placement.store.enforcer.leader import CycleStore, LeaseStore
from ovirt_placement.store.enforcer.observations import Sample, SampleStore
from ovirt_service import metrics
from ovirt_service.daemon import Progress
from ovirt_service.errors import UserError
from tests.builders import APART, CLUSTER, group, host, snapshot, vm
from tests.clock import Clock
from tests.enforcer.actions.bench import bench
from tests.pages import page_named_in, samples
from tests.scenarios.stage import simulated_time
from tests.stored import listening


def ask(url: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_the_page_alongside_the_metrics(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    now = 50.0
    caplog.set_level(logging.INFO)
    leases = LeaseStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=5)
    written = CycleStore(f"sqlite:///{tmp_path}/store.db", engine="default")
    leader = Leader(leases, "me", 600.0)
    progress = Progress(60.0, lambda: now)
    cycles = Cycles(written, EnforcerMetrics(), leader, progress, lambda: now, 60.0, lambda: 1)
    metrics.serve(metrics.Instruments("part").registry, "127.0.0.1:0", "metrics", {"/healthz": cycles.page})
    page = page_named_in(caplog.text)
    url = page.replace("/metrics", "/healthz")

    status, state = ask(url)
    assert status == 200
    assert (state["role"], state["leader"], state["last_cycle_seconds_ago"]) == ("follower", "", None)
    cycles.ended(engine_asked=True)
    assert ask(url)[1]["engine_reachable"] is None  # one that follows asks no engine
    leader.tend()
    now += 2.0
    status, state = ask(url)
    assert (status, state["role"], state["leader"], state["epoch"]) == (200, "leader", "me", 1)
    assert (state["last_cycle_seconds_ago"], state["engine_reachable"]) == (2.0, True)
    cycles.failed(EngineAway("the engine is away", request_sent=False))
    status, state = ask(url)
    assert (status, state["engine_reachable"]) == (200, False)
    assert state["last_cycle_error"] == "the engine is away"
    cycles.failed(NoSnapshot("nothing is known of the engine"))
    assert ask(url)[1]["engine_reachable"] is False
    now += 60.0
    status, state = ask(url)
    assert (status, state["status"]) == (503, "hangs")
    assert any(name.startswith("process_") for name, *_ in samples(page))
    written.close()
    leases.close()


TOO_CLOSE = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("apart", APART, "a b"))
HOUR = 3600.0


@pytest.fixture
def sampling_clock() -> Iterator[Clock]:
    """One that the store goes by as well."""
    made = Clock()
    with simulated_time(made):
        yield made


def verdict(state: ReservationState, survived: int, lost: int) -> ReservationVerdict:
    return ReservationVerdict(
        cluster=CLUSTER,
        name="blue",
        state=state,
        facts={},
        failures=1,
        failures_survived=survived,
        vms_without_home=lost,
    )


@pytest.mark.system
def test_hours_of_an_enforcer_are_a_row_each(tmp_path: Path) -> None:
    """In the first hour two VMs stand together that must be apart; once it enforces, they do not."""
    settings = {"mode": "enforce", "interval_seconds": 1800}
    with bench(tmp_path, TOO_CLOSE, settings) as made, made.enforcing() as daemon:
        while made.now < 6 * HOUR:
            made.pass_time(min(max(1.0, daemon.cycle()), 900.0))
        store = SampleStore(made.config.store.url, engine="default", patience_seconds=5)
        found = store.samples(since_seconds=7 * HOUR).samples
        store.close()
    first, *later = found
    assert (first.hard, first.plans, first.done, first.failed) == (1, 1, 1, 0)
    assert [one.hour for one in later] == list(range(first.hour + 1, first.hour + 6))
    assert {(one.hard, one.soft, one.plans, one.done) for one in later} == {(0, 0, 0, 0)}


def test_what_stays_the_same_is_written_four_times_an_hour(tmp_path: Path, sampling_clock: Clock) -> None:
    store = SampleStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=5)
    written = 0

    def count(connection: object, cursor: object, statement: str, *rest: object) -> None:
        nonlocal written
        written += statement.startswith("INSERT INTO samples")

    with listening(before_cursor_execute=count):
        sampler = Sampler(store, sampling_clock, lambda: 1)
        while sampling_clock.now < 2 * HOUR:
            sampler.looked_at(CLUSTER, "blue", ())
            sampler.judged([verdict(ReservationState.SAFE, 1, 0)])
            sampling_clock.now += 10.0
    assert written == 2 * 2 * 4
    store.close()


def test_the_worst_of_an_hour_is_written_however_short_it_was(tmp_path: Path, sampling_clock: Clock) -> None:
    store = SampleStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=5)
    epoch = 1
    sampler = Sampler(store, sampling_clock, lambda: epoch)
    for state, survived, lost in (
        (ReservationState.SAFE, 1, 0),
        (ReservationState.UNSAFE, 0, 7),
        (ReservationState.UNKNOWN, 0, 0),
        (ReservationState.SAFE, 1, 0),
    ):
        sampling_clock.now += 1.0
        sampler.judged([verdict(state, survived, lost)])
    assert [(one.ha_failures, one.ha_survived, one.ha_not_restarted) for one in lately(store)] == [(1, 0, 7)]
    sampling_clock.now += HOUR
    epoch = 2  # another leader, who knows nothing of what was written
    sampler.judged([verdict(ReservationState.SAFE, 1, 0)])
    assert [one.ha_survived for one in lately(store)] == [0, 1]
    store.close()


def lately(store: SampleStore) -> tuple[Sample, ...]:
    return store.samples(since_seconds=3 * HOUR).samples


AGAIN = "engine and store: works again"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cycles(tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture) -> Iterator[Cycles]:
    caplog.set_level(logging.INFO)
    with closing(CycleStore(f"sqlite:///{tmp_path}/store.db", engine="default")) as store:
        nobody, progress = cast("Leader", None), Progress(60.0, clock)
        yield Cycles(store, EnforcerMetrics(), nobody, progress, clock, 60.0, lambda: 1)


def test_an_engine_works_again_once_it_was_asked(cycles: Cycles, caplog: pytest.LogCaptureFixture) -> None:
    cycles.failed(EngineAway("the engine is away", request_sent=False))
    cycles.ended(engine_asked=False)
    assert caplog.messages == ["engine and store: the engine is away"]
    cycles.ended(engine_asked=True)
    cycles.ended(engine_asked=True)
    assert caplog.messages[1:] == [AGAIN]


def test_a_store_works_again_that_a_cycle_has_used(cycles: Cycles, caplog: pytest.LogCaptureFixture) -> None:
    cycles.failed(UserError("the store is locked"))
    cycles.ended(engine_asked=False)
    assert caplog.messages == ["engine and store: the store is locked", AGAIN]


def test_an_engine_that_stays_away_is_asked_less_and_less_often(cycles: Cycles, clock: Clock) -> None:
    pauses = []
    for _ in range(8):
        cycles.failed(EngineAway("the engine is away", request_sent=False))
        pauses.append(cycles.pause)
        cycles.ended(engine_asked=False)  # the lease was renewed
        clock.now += cycles.pause
    assert pauses[0] < pauses[3] < pauses[-1] <= 60.0


def test_one_that_follows_says_nothing_of_the_engine(
    cycles: Cycles, caplog: pytest.LogCaptureFixture
) -> None:
    away = EngineAway("the engine is away", request_sent=False)
    cycles.failed(away)
    cycles.followed()
    assert (caplog.messages, cycles.failure) == (["engine and store: the engine is away"], None)
    cycles.failed(away)
    cycles.ended(engine_asked=True)
    assert caplog.messages[1:] == ["engine and store: the engine is away", AGAIN]


def test_one_that_follows_has_used_the_store(cycles: Cycles, caplog: pytest.LogCaptureFixture) -> None:
    cycles.failed(UserError("the store is locked"))
    cycles.followed()
    assert caplog.messages == ["engine and store: the store is locked", AGAIN]
