"""What the enforcer writes down of clusters: the worst of each hour, no more often than that takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy

from ovirt_enforcer.ha_monitor.verdict import ReservationState, ReservationVerdict
from ovirt_enforcer.service.sampling import Sampler
from ovirt_placement.engine.connection.client import connect
from ovirt_placement.store.samples import Sample, SampleStore
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import serve
from tests.builders import APART, CLUSTER, group, host, snapshot, vm
from tests.clock import Clock
from tests.scenarios.stage import START, configured, daemon_of, simulated_time

TOO_CLOSE = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("apart", APART, "a b"))
HOUR = 3600.0


@pytest.fixture
def clock() -> Iterator[Clock]:
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
def test_hours_of_an_enforcer_are_a_row_each(tmp_path: Path, clock: Clock) -> None:
    """In the first hour two VMs stand together that must be apart; once it enforces, they do not."""
    engine = Engine.from_snapshot(TOO_CLOSE, clock=START, settings=PROMPT)
    server = serve(engine)
    config = configured(tmp_path, server.api_url, {"mode": "enforce", "interval_seconds": 1800})
    with connect(config.engine) as connection, daemon_of(config, connection, clock) as daemon:
        while clock.now < 6 * HOUR:
            pause = min(max(1.0, daemon.cycle()), 900.0)
            engine.advance(pause)
            clock.now += pause
    server.close()
    store = SampleStore(config.store.url, engine="default", patience_seconds=5)
    found = store.samples(since_seconds=7 * HOUR).samples
    store.close()
    first, *later = found
    assert (first.hard, first.plans, first.done, first.failed) == (1, 1, 1, 0)
    assert [one.hour for one in later] == list(range(first.hour + 1, first.hour + 6))
    assert {(one.hard, one.soft, one.plans, one.done) for one in later} == {(0, 0, 0, 0)}


def test_what_stays_the_same_is_written_four_times_an_hour(tmp_path: Path, clock: Clock) -> None:
    store = SampleStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=5)
    written = 0

    def count(connection: object, cursor: object, statement: str, *rest: object) -> None:
        nonlocal written
        written += statement.startswith("INSERT INTO samples")

    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", count)
    try:
        sampler = Sampler(store, clock, lambda: 1)
        while clock.now < 2 * HOUR:
            sampler.looked_at(CLUSTER, "blue", ())
            sampler.judged([verdict(ReservationState.SAFE, 1, 0)])
            clock.now += 10.0
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", count)
    assert written == 2 * 2 * 4
    store.close()


def test_the_worst_of_an_hour_is_written_however_short_it_was(tmp_path: Path, clock: Clock) -> None:
    store = SampleStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=5)
    epoch = 1
    sampler = Sampler(store, clock, lambda: epoch)
    for state, survived, lost in (
        (ReservationState.SAFE, 1, 0),
        (ReservationState.UNSAFE, 0, 7),
        (ReservationState.UNKNOWN, 0, 0),
        (ReservationState.SAFE, 1, 0),
    ):
        clock.now += 1.0
        sampler.judged([verdict(state, survived, lost)])
    assert [(one.ha_failures, one.ha_survived, one.ha_not_restarted) for one in lately(store)] == [(1, 0, 7)]
    clock.now += HOUR
    epoch = 2  # another leader, who knows nothing of what was written
    sampler.judged([verdict(ReservationState.SAFE, 1, 0)])
    assert [one.ha_survived for one in lately(store)] == [0, 1]
    store.close()


def lately(store: SampleStore) -> tuple[Sample, ...]:
    return store.samples(since_seconds=3 * HOUR).samples
