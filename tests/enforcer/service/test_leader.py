"""Who leads, whatever becomes of the other and of the database; how cycles end; health, and trends."""

import json
import logging
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from ovirt_enforcer.service.leader import Leader, boot_clock, own_name
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
from tests.placement.databases import database, set_clock
from tests.placement.store.conftest import Opening
from tests.proxy.running import eventually
from tests.scenarios.stage import simulated_time
from tests.stored import listening

LEASE = 30.0
LOOK = LEASE / 3


class World:
    """A store, enforcers, and time that passes for both alike unless a test says otherwise."""

    def __init__(self, url: str, opening: Opening) -> None:
        self.url, self._opening = url, opening
        self.now = 1000.0
        self.reported: list[tuple[str, int]] = []

    def enforcer(self, name: str) -> Leader:
        leases = self._opening(LeaseStore, patience_seconds=0.05)
        return Leader(leases, name, LEASE, lambda: self.now, lambda at: self.reported.append((name, at)))

    def sleep(self, seconds: float) -> None:
        """Let time pass for everybody."""
        self.now += seconds
        set_clock(self.url, seconds)


@pytest.fixture
def world(url: str, opening: Opening) -> World:
    return World(url, opening)


def test_one_leads_and_the_other_watches(world: World) -> None:
    one, other = world.enforcer("one"), world.enforcer("other")
    assert one.tend()
    assert not other.tend()
    assert (one.epoch, other.epoch, one.known, other.known) == (1, 0, "one", "one")
    for _ in range(20):
        world.sleep(one.seconds_until_due())
        assert one.tend()
        assert not other.tend()
    assert world.reported == [("one", 1)]


def test_the_database_is_asked_when_it_is_due_and_not_before(world: World) -> None:
    one = world.enforcer("one")
    one.tend()
    assert one.seconds_until_due() == LOOK
    with database(world.url) as connection:
        connection.exec_driver_sql("DELETE FROM leases")
    world.now += LOOK - 1
    assert one.tend()
    world.now += 1
    assert not one.tend()


def test_when_the_leader_dies_the_other_leads_within_a_lease(world: World) -> None:
    one, other = world.enforcer("one"), world.enforcer("other")
    one.tend()
    waited = 0.0
    while not other.tend():
        waited += (seconds := max(other.seconds_until_due(), 0.001))
        world.sleep(seconds)
    assert LEASE - 1 <= waited <= LEASE + 1
    assert other.epoch == 2
    assert not one.tend()
    assert not one.tend()
    assert world.reported == [("one", 1), ("other", 2), ("one", 0)]


def test_who_steps_down_is_followed_at_the_next_look(world: World) -> None:
    one, other = world.enforcer("one"), world.enforcer("other")
    one.tend()
    other.tend()
    one.step_down()
    assert (one.epoch, one.tend()) == (0, False)
    world.sleep(other.seconds_until_due())
    assert other.tend()
    one.step_down()  # twice takes nothing from the other
    world.sleep(LOOK)
    assert other.tend()
    assert not one.tend()


def test_who_was_stopped_for_a_lease_leads_no_more_and_asks_nobody_for_that(world: World) -> None:
    one = world.enforcer("one")
    one.tend()
    assert one.still_leads(1)
    world.now += LEASE  # the boot clock alone: the database is slow
    assert (one.epoch, one.still_leads(1)) == (0, False)


def test_near_its_end_a_lease_is_renewed_before_a_request(world: World) -> None:
    one, other = world.enforcer("one"), world.enforcer("other")
    one.tend()
    world.sleep(LEASE - 1)
    assert one.still_leads(1)
    world.sleep(LEASE - 1)
    assert not other.tend()
    assert one.still_leads(1)


def test_near_its_end_a_lease_that_another_has_is_seen_before_a_request(world: World) -> None:
    """The database's clock jumped, so the other took over though the boot clock says that it is too early."""
    one, other = world.enforcer("one"), world.enforcer("other")
    one.tend()
    set_clock(world.url, LEASE)
    assert other.tend()
    world.now += LEASE - 1
    assert not one.still_leads(1)


def test_a_later_epoch_is_another(world: World) -> None:
    """What was decided before another may have led is not done, though the same process leads again."""
    one = world.enforcer("one")
    one.tend()
    world.sleep(LEASE)
    assert not one.tend()
    assert one.tend()
    assert one.epoch == 2
    assert not one.still_leads(1)
    assert one.still_leads(2)


@pytest.mark.system
def test_without_the_database_it_leads_until_the_lease_ends(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    one = world.enforcer("one")
    one.tend()
    with database(world.url) as holder:
        holder.exec_driver_sql("BEGIN EXCLUSIVE")
        while world.now < 1000.0 + LEASE - 0.001:
            assert one.tend()
            assert one.still_leads(1)
            world.now = min(world.now + one.seconds_until_due(), 1000.0 + LEASE - 0.001)
        world.now = 1000.0 + LEASE
        assert not one.tend()
        assert not one.still_leads(1)
    world.sleep(LEASE)
    one.tend()
    world.sleep(one.seconds_until_due())
    assert one.tend()
    assert one.epoch == 2
    complaints = [record for record in caplog.records if "cannot be looked at" in record.getMessage()]
    assert len(complaints) == 1


def test_a_database_that_fails_in_itself_is_asked_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = world.enforcer("one")
    assert one.tend()
    with monkeypatch.context() as failing:
        failing.setattr(one.leases, "renew", partial(refuse, "could not read block 0 in file"))
        world.now += LOOK
        assert one.tend()
        assert one.seconds_until_due() < LOOK
    world.now += one.seconds_until_due()
    assert one.tend()
    assert one.seconds_until_due() == LOOK


def refuse(words: str, *arguments: object) -> bool:
    raise UserError(words)


@pytest.mark.system
def test_a_thread_keeps_the_lease_of_who_is_busy_and_not_of_who_hangs(opening: Opening) -> None:
    hung = threading.Event()
    busy, other = (Leader(opening(LeaseStore), name, 1.5) for name in ("busy", "other"))
    assert busy.tend()
    first_end = boot_clock() + 1.5
    busy.tend_concurrently(hung.is_set)
    eventually(lambda: boot_clock() > first_end)
    assert not other.tend()
    assert busy.still_leads(1)
    hung.set()
    eventually(other.tend)
    assert busy.epoch == 0
    other.step_down()
    busy.step_down()


def test_names_distinguish_processes() -> None:
    assert len({own_name() for _ in range(100)}) == 100


def ask(url: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_the_page_alongside_the_metrics(opening: Opening, caplog: pytest.LogCaptureFixture) -> None:
    now = 50.0
    caplog.set_level(logging.INFO)
    leader, progress = Leader(opening(LeaseStore), "me", 600.0), Progress(60.0, lambda: now)
    cycles = Cycles(opening(CycleStore), EnforcerMetrics(), leader, progress, lambda: now, 60.0, lambda: 1)
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


TOO_CLOSE = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("apart", APART, "a b"))
HOUR = 3600.0


@pytest.fixture
def clock() -> Iterator[Clock]:
    """One that the store goes by as well."""
    made = Clock()
    with simulated_time(made):
        yield made


SAFE, UNSAFE = (ReservationState.SAFE, 1, 0), (ReservationState.UNSAFE, 0, 7)


def verdict(state: ReservationState, survived: int, lost: int) -> ReservationVerdict:
    failed = {"failures": 1, "failures_survived": survived, "vms_without_home": lost}
    return ReservationVerdict(cluster=CLUSTER, name="blue", state=state, facts={}, **failed)


def lately(store: SampleStore) -> tuple[Sample, ...]:
    return store.samples(since_seconds=7 * HOUR).samples


@pytest.mark.system
def test_hours_of_an_enforcer_are_a_row_each(tmp_path: Path, opening: Opening) -> None:
    """In the first hour two VMs stand together that must be apart; once it enforces, they do not."""
    settings = {"mode": "enforce", "interval_seconds": 1800}
    with bench(tmp_path, TOO_CLOSE, settings) as made, made.enforcing() as daemon:
        while made.now < 6 * HOUR:
            made.pass_time(min(max(1.0, daemon.cycle()), 900.0))
        found = lately(opening(SampleStore))
    first, *later = found
    assert (first.hard, first.plans, first.done, first.failed) == (1, 1, 1, 0)
    assert [one.hour for one in later] == list(range(first.hour + 1, first.hour + 6))
    assert {(one.hard, one.soft, one.plans, one.done) for one in later} == {(0, 0, 0, 0)}


def test_what_stays_the_same_is_written_four_times_an_hour(opening: Opening, clock: Clock) -> None:
    written = 0

    def count(connection: object, cursor: object, statement: str, *rest: object) -> None:
        nonlocal written
        written += statement.startswith("INSERT INTO samples")

    with listening(before_cursor_execute=count):
        sampler = Sampler(opening(SampleStore), clock, lambda: 1)
        clock.now += 5.0  # no moment is the end of an hour, of which a database may see a little more
        while clock.now < 2 * HOUR:
            sampler.record_violations(CLUSTER, "blue", ())
            sampler.judged([verdict(*SAFE)])
            clock.now += 10.0
    assert written == 2 * 2 * 4


def test_the_worst_of_an_hour_is_written_however_short_it_was(opening: Opening, clock: Clock) -> None:
    store, epoch = opening(SampleStore), 1
    sampler = Sampler(store, clock, lambda: epoch)
    for found in (SAFE, UNSAFE, (ReservationState.UNKNOWN, 0, 0), SAFE):
        clock.now += 1.0
        sampler.judged([verdict(*found)])
    assert [(one.ha_failures, one.ha_survived, one.ha_not_restarted) for one in lately(store)] == [(1, 0, 7)]
    clock.now += HOUR
    epoch = 2  # another leader, who knows nothing of what was written
    sampler.judged([verdict(*SAFE)])
    assert [one.ha_survived for one in lately(store)] == [0, 1]


def test_what_lasts_over_the_end_of_an_hour_is_of_both(opening: Opening, clock: Clock) -> None:
    store = opening(SampleStore)
    sampler = Sampler(store, clock, lambda: 1)
    for at, found in ((HOUR - 300, UNSAFE), (HOUR + 60, UNSAFE), (HOUR + 300, SAFE), (HOUR + 1200, SAFE)):
        clock.now = at
        sampler.judged([verdict(*found)])
    assert [one.ha_not_restarted for one in lately(store)] == [7, 7]


AGAIN = "engine and store: works again"


AWAY = EngineAway("the engine is away", request_sent=False)
AWAY_SAID, LOCKED_SAID = "engine and store: the engine is away", "engine and store: the store is locked"


@pytest.fixture
def cycles(opening: Opening, clock: Clock, caplog: pytest.LogCaptureFixture) -> Cycles:
    caplog.set_level(logging.INFO)
    nobody, progress = cast("Leader", None), Progress(60.0, clock)
    return Cycles(opening(CycleStore), EnforcerMetrics(), nobody, progress, clock, 60.0, lambda: 1)


def test_an_engine_works_again_once_it_was_asked(cycles: Cycles, caplog: pytest.LogCaptureFixture) -> None:
    cycles.failed(AWAY)
    cycles.ended(engine_asked=False)
    assert caplog.messages == [AWAY_SAID]
    cycles.ended(engine_asked=True)
    cycles.ended(engine_asked=True)
    assert caplog.messages == [AWAY_SAID, AGAIN]


@pytest.mark.parametrize("follows", [False, True])
def test_a_store_works_again_that_a_cycle_has_used(
    cycles: Cycles, caplog: pytest.LogCaptureFixture, follows: bool
) -> None:
    cycles.failed(UserError("the store is locked"))
    if follows:
        cycles.followed()
    else:
        cycles.ended(engine_asked=False)
    assert caplog.messages == [LOCKED_SAID, AGAIN]


def test_an_engine_that_stays_away_is_asked_less_and_less_often(cycles: Cycles, clock: Clock) -> None:
    pauses = []
    for _ in range(8):
        cycles.failed(AWAY)
        pauses.append(cycles.pause)
        cycles.ended(engine_asked=False)  # the lease was renewed
        clock.now += cycles.pause
    assert pauses[0] < pauses[3] < pauses[-1] <= 60.0


def test_one_that_follows_says_nothing_of_the_engine(
    cycles: Cycles, caplog: pytest.LogCaptureFixture
) -> None:
    cycles.failed(AWAY)
    cycles.followed()
    assert (caplog.messages, cycles.failure) == ([AWAY_SAID], None)
    cycles.failed(AWAY)
    cycles.ended(engine_asked=True)
    assert caplog.messages == [AWAY_SAID, AWAY_SAID, AGAIN]
