"""What is said of an HA reservation: once each, again after a day, no flood, and nothing unknown clears."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_enforcer.log import NoticeKind
from ovirt_enforcer.notifications import Delivery, Notifications
from ovirt_enforcer.watchers.engine_watch import UnitWatch
from ovirt_enforcer.watchers.ha_watch import Announcements, due
from ovirt_enforcer.watchers.verdict import ReservationState, ReservationVerdict
from ovirt_placement.model import SchedulingPolicy
from ovirt_placement.store.enforcer.leader import Announcement, HaAnnouncementStore, LeaseStore
from ovirt_placement.store.sql.access import LeaseLost
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import cluster, snapshot
from tests.clock import Clock
from tests.configuration import write_configuration
from tests.enforcer.launching import At, EnforcerProcess
from tests.enforcer.watchers.test_ha_watch import STATE
from tests.enforcer.watchers.test_ha_watch import reported as events_of
from tests.examples import some
from tests.kit.notices import KeepingChannel, KeptNotices
from tests.placement.store.conftest import Opening
from tests.proxy.running import eventually
from tests.scenarios.stage import START

HOLD = 60.0
DAY = 24 * 3600.0
#: How often is looked, in seconds.
EVERY = 30.0


def reported(states: list[ReservationState]) -> list[tuple[float, NoticeKind]]:
    """What is said, and when, if a look after another shows these states."""
    said: list[tuple[float, NoticeKind]] = []
    since = 0.0
    for number, state in enumerate(states):
        now = number * EVERY
        if number == 0 or states[number - 1] is not state:
            since = now
        history = [Announcement(0, "c1", kind, {}, now - at, True) for at, kind in said]
        kind = due(history, state, now - since, HOLD)
        if kind is not None:
            said.append((now, kind))
    return said


SAFE, UNSAFE, UNKNOWN, OFF = (
    ReservationState.SAFE,
    ReservationState.UNSAFE,
    ReservationState.UNKNOWN,
    ReservationState.OFF,
)


def kinds(states: list[ReservationState]) -> list[NoticeKind]:
    return [kind for _, kind in reported(states)]


def test_each_is_reported_once() -> None:
    assert kinds([SAFE] * 9) == []
    assert reported([SAFE, *[UNSAFE] * 9, *[SAFE] * 9]) == [
        (EVERY, NoticeKind.HA_ALERT),
        (10 * EVERY + HOLD, NoticeKind.HA_ALL_CLEAR),
    ]


def test_an_alert_that_lasts_is_reported_again_after_a_day() -> None:
    found = reported([UNSAFE] * int(2.5 * DAY / EVERY))
    assert found == [(0.0, NoticeKind.HA_ALERT), (DAY, NoticeKind.HA_ALERT), (2 * DAY, NoticeKind.HA_ALERT)]


def test_what_is_unknown_clears_nothing_and_is_reported_once() -> None:
    assert kinds([UNSAFE, *[UNKNOWN] * 99, *[UNSAFE] * 99]) == [NoticeKind.HA_ALERT, NoticeKind.HA_UNKNOWN]
    assert kinds([UNSAFE, *[UNKNOWN] * 9, *[SAFE] * 9]) == [
        NoticeKind.HA_ALERT,
        NoticeKind.HA_UNKNOWN,
        NoticeKind.HA_ALL_CLEAR,
    ]
    assert kinds([UNKNOWN, SAFE, UNKNOWN, SAFE]) == []


@given(st.lists(st.tuples(st.sampled_from(list(ReservationState)), st.integers(1, 40)), max_size=60))
def test_what_was_said_last_is_true_in_the_end(runs: list[tuple[ReservationState, int]]) -> None:
    """Once a state has lasted, it is what was said last; and an alert is reported at once."""
    states = [state for state, times in runs for _ in range(times)]
    for end in ReservationState:
        found = kinds([*states, *[end] * (int(3600 / EVERY) + 2)])
        known = [kind for kind in found if kind is not NoticeKind.HA_UNKNOWN]
        if end in (SAFE, OFF):
            assert not found or found[-1] is NoticeKind.HA_ALL_CLEAR
        elif end is UNSAFE:
            assert known[-1] is NoticeKind.HA_ALERT
        else:
            assert found[-1] is NoticeKind.HA_UNKNOWN
        assert not known or known[0] is NoticeKind.HA_ALERT or found[0] is NoticeKind.HA_UNKNOWN


@given(st.integers(1, 20), st.integers(1, 20))
def test_a_cluster_that_flaps_all_day_makes_no_flood(bad: int, good: int) -> None:
    states = ([UNSAFE] * bad + [SAFE] * good) * (int(DAY / EVERY) // (bad + good) + 1)
    assert len(reported(states[: int(DAY / EVERY)])) <= 64


#: These assertions depend on real time.

SETTINGS = """\
[enforcer]
interval_seconds = 0.2
events_seconds = 3600
lease_seconds = 1.0
[enforcer.ha]
hold_seconds = 0.0
"""
#: All around what has an effect: what is written, what is sent, and what is noted as reported.
POINTS = (
    "before INSERT INTO ha_announcements",
    "after INSERT INTO ha_announcements",
    "before POST /events",
    "before UPDATE ha_announcements SET",
    "after UPDATE ha_announcements SET",
)
LEADS, LOCKED = "the leader from now on", "the lease cannot be looked at"
#: Sent, and not noted.
SENT = "after POST /events"
NOTED = "after UPDATE ha_announcements SET"


class World:
    """Killed at any point, or followed by another, the watch reports each alert and all-clear once."""

    def __init__(self, folder: Path, engine: Engine, url: str) -> None:
        self.engine = engine
        self._folder = folder
        self._configuration = write_configuration(folder, url, more=SETTINGS)

    def watch(self, name: str, where: str = "", *, deadly: bool = True) -> EnforcerProcess:
        at = At(where, 1, signal.SIGKILL if deadly else signal.SIGSTOP)
        return EnforcerProcess(self._folder, name, self._configuration, at)

    def set_safe(self, safe: bool) -> None:
        (self.engine.hosts.activate if safe else self.engine.hosts.deactivate)("h3")
        self.engine.advance(60)


@contextmanager
def world(folder: Path) -> Iterator[World]:
    folder.mkdir()
    engine = Engine.from_snapshot(STATE, clock=START, settings=PROMPT)
    with closing(serve(engine)) as server:
        yield World(folder, engine, server.api_url)


def lived_through(world: World, where: str = "", *, deadly: bool = True) -> list[str]:
    """Kill or stop a watch at a point of an alert and its all-clear, if it comes there; another one goes on.

    One that was stopped wakes when the other leads, or waits for the database. Shows the points of the first.
    """
    world.set_safe(False)
    with world.watch("first", where, deadly=deadly) as first:
        eventually(lambda: first.halted or NOTED in first.passed)
        early = first.halted
        if not early:
            world.set_safe(True)
            eventually(lambda: first.halted or first.passed.count(NOTED) == 2)
        with world.watch("second") as second:
            if first.stopped:
                # It may hold the database's lock: some other thread of it may be amid a write as well.
                eventually(lambda: LEADS in second.said or LOCKED in second.said)
                first.wake()
            if early:
                eventually(lambda: events_of(world.engine) == ["alert"])
                world.set_safe(True)
            eventually(lambda: events_of(world.engine) == ["alert", "normal"])
            # Had anything been said twice, it would stand before this one.
            world.set_safe(False)
            eventually(lambda: events_of(world.engine)[2:] == ["alert"])
        return first.passed


@pytest.mark.system
@pytest.mark.timing
@pytest.mark.nightly
@pytest.mark.parametrize("deadly", [True, False], ids=["killed", "stopped and woken late"])
def test_at_whatever_statement_it_is_followed_by_another_all_is_reported_once(
    deadly: bool, tmp_path: Path
) -> None:
    """The tables are made in one transaction before that; tests of the store kill there."""
    with world(tmp_path / "unhurt") as found:
        points = [*dict.fromkeys(lived_through(found))]
    assert {*POINTS, SENT} <= {*points}
    chosen = points[points.index("before INSERT INTO leases") :]
    # To be stopped and woken takes longer, and is much the same around a statement.
    for number, where in enumerate(some(chosen) if deadly else some(chosen)[::2]):
        with world(tmp_path / str(number)) as found:
            assert where in lived_through(found, where, deadly=deadly)


@pytest.mark.system
@pytest.mark.timing
def test_killed_before_it_could_note_that_it_was_reported(tmp_path: Path) -> None:
    with world(tmp_path / "world") as found:
        assert SENT in lived_through(found, SENT)


@pytest.mark.system
@pytest.mark.timing
def test_a_leader_that_is_stopped_before_it_sends_and_woken_late_reports_nothing_twice(
    tmp_path: Path,
) -> None:
    with world(tmp_path / "world") as unsafe:
        unsafe.set_safe(False)
        with unsafe.watch("first", "before POST /events", deadly=False) as first:
            eventually(lambda: first.stopped)
            with unsafe.watch("second") as second:
                eventually(lambda: events_of(unsafe.engine) == ["alert"] and NOTED in second.passed)
                first.wake()
                eventually(lambda: SENT in first.passed and "not the leader" in first.said)
                unsafe.set_safe(True)
                eventually(lambda: second.passed.count(NOTED) == 2)
                assert events_of(unsafe.engine) == ["alert", "normal"], f"{first.said}\n{second.said}"


FACTS = {"cluster": "blue", "losses": "host h1", "missing_mb": "1", "vms_without_home": "1"}
VERDICT = ReservationVerdict(cluster="c1", name="blue", state=ReservationState.UNSAFE, facts=FACTS)


class Process:
    """One enforcer's announced, in the epoch in which it led, or believes that it leads."""

    def __init__(self, url: str, epoch: int) -> None:
        self.ears = KeepingChannel()
        self.store = HaAnnouncementStore(url, engine="default", patience_seconds=30, epoch=lambda: epoch)
        reported = Notifications([Delivery(self.ears, NoticeKind)], "default")
        self.announced = Announcements(self.store, reported, lambda: 0.0, lambda: epoch)


def test_what_the_next_one_has_written_is_not_sent_by_the_one_before(url: str, opening: Opening) -> None:
    leases = opening(LeaseStore)
    assert leases.take_lease("first", 600.0) == 1
    leases.release(1)
    assert leases.take_lease("second", 600.0) == 2
    first, second = Process(url, 1), Process(url, 2)
    second.announced.write(NoticeKind.HA_ALERT, VERDICT)
    with pytest.raises(LeaseLost):
        first.announced.deliver({"c1"})
    second.announced.deliver({"c1"})
    eventually(lambda: bool(second.ears.heard))
    assert first.ears.heard == []
    assert [notice.kind for notice in second.ears.heard] == [NoticeKind.HA_ALERT]
    for one in (first, second):
        one.store.close()


@pytest.fixture
def kept() -> KeptNotices:
    return KeptNotices()


#: The clock, and the disabled units of cluster blue; None where it is gone.
Looks = Sequence[tuple[float, str | None]]


def watch_units(kept: KeptNotices, looks: Looks) -> None:
    clock = Clock()
    watch = UnitWatch(kept, clock)
    for clock.now, disabled in looks:
        policy = SchedulingPolicy(disabled=tuple(disabled or ""))
        blue = [] if disabled is None else [cluster("c1", name="blue", scheduling_policy=policy)]
        watch.observe(snapshot(*blue, cluster("c2", name="red")))


@pytest.mark.parametrize(
    "looks",
    [[(0, "A"), (120, "A"), (130, ""), (200, "A"), (340, "A")], [(0, "A"), (100, None), (200, "A")]],
    ids=["a start", "a cluster that was gone"],
)
def test_disabled_units_that_are_no_news(kept: KeptNotices, looks: Looks) -> None:
    watch_units(kept, looks)
    assert kept.notices == []


def test_disabled_units_are_reported_once_a_day_and_their_end_once(kept: KeptNotices) -> None:
    day = 24 * 3600
    watch_units(kept, [*((now, "AB") for now in (0, 149, 151, 1000, 80_000))])
    (notice,) = kept.notices
    assert (notice.kind, notice.facts) == (NoticeKind.UNITS_DISABLED, {"cluster": "blue", "units": "A, B"})
    kept.notices.clear()
    watch_units(kept, [(0, "AB"), (151, "AB"), (151 + day, "AB"), (151 + day, ""), (151 + day, "")])
    assert kept.kinds == [NoticeKind.UNITS_DISABLED] * 2 + [NoticeKind.UNITS_ENABLED]
