"""What is read again and when: after an event, at its interval, and the sooner the more is decided."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.config import InventorySettings
from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.engine.vms import Detail
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.on_demand import NO_DEMANDS, Demands
from ovirt_placement.inventory.service.events import LATEST_SECONDS, Feed, reported_by
from ovirt_placement.inventory.service.schedule import (
    BURST_SECONDS,
    LATER_SECONDS,
    SOON_SECONDS,
    Reconciliations,
    ReconciliationScope,
    Rereads,
    Subject,
    SubjectKind,
    next_reading,
    reconciliations,
    seconds_between_turns,
)
from ovirt_placement.model import Vm
from ovirt_placement.model.snapshot import HOST_STATISTICS
from tests import builders as build
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import configured, ended, loaded, running
from tests.placement.inventory.stage import event

VM = Subject(SubjectKind.VM, "v")
HOSTS = ("h1", "h2", "h3")


@dataclass
class Engine:
    """One VM: what was logged of it and when that shows, which states followed and when these show."""

    events: list[tuple[float, EngineEvent]] = field(default_factory=list)
    states: list[tuple[float, Vm]] = field(default_factory=lambda: [(0.0, build.vm("v"))])

    def change(self, now: float, code: int, vm: Vm, lag: float, late: float) -> None:
        """Log an event and save the state that it speaks of; states show in their order."""
        host = vm.host or self.states[-1][1].host
        number = len(self.events) + 1
        self.events.append((now + late, event(number, code, vm="v", host=host, time=now)))
        self.states.append((max(now + lag, self.states[-1][0]), vm))

    def page(self, feed: Feed, now: float) -> tuple[EngineEvent, ...]:
        return tuple(one for shows, one in self.events if shows <= now and one.id > feed.after)

    def shown(self, now: float) -> int:
        """The number of the newest state that shows."""
        return max(number for number, (shows, _) in enumerate(self.states) if shows <= now)

    @property
    def last(self) -> Vm:
        return self.states[-1][1]


@dataclass
class Reader:
    """The machine at work: the feed, the rereads, and what was read last."""

    engine: Engine
    feed: Feed = field(default_factory=lambda: Feed((), 0.0))
    rereads: Rereads = field(default_factory=Rereads)
    seen: int = 0
    readings: int = 0

    def turn(self, now: float) -> None:
        for one in self.feed.read_page(self.engine.page(self.feed, now), now):
            reported = reported_by(one)
            assert reported is not None
            subject, effect = reported
            if effect is None:
                self.rereads.ask(subject, now)
            else:
                self.rereads.await_effect(subject, effect, now)
        if VM in self.rereads.due(now):
            self.seen = self.engine.shown(now)
            self.readings += 1
            self.rereads.read(VM, self.engine.states[self.seen][1], now)

    def turns(self, pauses: list[float], until: float) -> Iterator[float]:
        """Take turns with these pauses, over and over, until then; yields the moment after each."""
        now = 0.0
        while now < until:
            for pause in pauses:
                now += pause
                self.turn(now)
                yield now


@dataclass(frozen=True)
class Step:
    pause: float
    choice: int
    lag: float
    late: float


def steps(lag: float, late: float, pause: float = 0.0) -> st.SearchStrategy[list[Step]]:
    drawn = (st.floats(pause, pause + 4), st.integers(0, 5), st.floats(0, lag), st.floats(0, late))
    return st.lists(st.builds(Step, *drawn), min_size=1, max_size=12)


turns = st.lists(st.floats(0.05, 1.5), min_size=1, max_size=20)


def lived(history: list[Step]) -> Engine:
    """An engine in which a VM starts, migrates and stops as drawn."""
    engine, now = Engine(), 0.0
    for step in history:
        now += step.pause
        vm = engine.last
        other = HOSTS[(HOSTS.index(vm.host) + 1 + step.choice % 2) % 3] if vm.host else HOSTS[step.choice % 3]
        if vm.host is None:
            code, after = 32, build.vm("v", other)
        elif vm.status == "migrating":
            code, after = (63, build.vm("v", other)) if step.choice else (65, build.vm("v", vm.host))
        elif step.choice % 2:
            code, after = 62, build.vm("v", vm.host, status="migrating")
        else:
            code, after = 61, build.vm("v")
        engine.change(now, code, after, step.lag, step.late)
    return engine


def end_of(engine: Engine) -> float:
    return max(shows for shows, _ in engine.events)


@given(steps(lag=SOON_SECONDS - 0.01, late=LATEST_SECONDS - 1.6), turns)
def test_whatever_comes_late_the_view_comes_to_hold_the_engines_state(
    history: list[Step], pauses: list[float]
) -> None:
    engine = lived(history)
    reader = Reader(engine)
    for _ in reader.turns(pauses, end_of(engine) + SOON_SECONDS + 2 * max(pauses)):
        pass
    assert engine.states[reader.seen][1] == engine.last


@given(steps(lag=LATER_SECONDS - 0.01, late=1.0, pause=LATER_SECONDS), turns)
def test_a_state_is_seen_in_the_first_turn_in_which_it_and_its_event_show(
    history: list[Step], pauses: list[float]
) -> None:
    engine = lived(history)
    reader = Reader(engine)
    for now in reader.turns(pauses, end_of(engine) + LATER_SECONDS):
        shown = engine.shown(now)
        if shown and engine.events[shown - 1][0] <= now:
            assert reader.seen == shown


@given(steps(lag=0.5, late=0.5), turns)
def test_when_nothing_happens_any_more_nothing_is_read(history: list[Step], pauses: list[float]) -> None:
    engine = lived(history)
    reader = Reader(engine)
    *_, now = reader.turns(pauses, end_of(engine) + LATER_SECONDS + 2 * max(pauses))
    readings = reader.readings
    for second in range(1, 21):
        reader.turn(now + second)
    assert reader.readings == readings


def moments_of(rereads: Rereads, gone_at: float = math.inf) -> list[float]:
    """When the VM, which goes at a moment, is read within ten seconds, if turns are a tenth apart."""
    readings = []
    for tenth in range(100, 200):
        now = tenth / 10
        if rereads.due(now):
            readings.append(now)
            rereads.read(VM, build.vm("v") if now < gone_at else None, now)
    return readings


def test_an_unknown_effect_is_looked_for_at_once_soon_and_later() -> None:
    rereads = Rereads()
    rereads.ask(VM, 10.0)
    assert rereads.due(10.0) == rereads.due(10.5) == (VM,), "a reading that failed is due still"
    assert moments_of(rereads) == [10.0, 11.0, 15.0]


def test_an_effect_that_shows_is_confirmed_soon_and_no_more() -> None:
    rereads = Rereads()
    rereads.await_effect(VM, lambda found: found is None, 10.0)
    assert moments_of(rereads, gone_at=10.35) == [10.0, 10.1, 10.2, 10.3, 10.4, 11.0]


def test_an_effect_that_never_shows_is_given_up() -> None:
    rereads = Rereads()
    rereads.await_effect(VM, lambda found: False, 10.0)
    rereads.read(VM, None, 14.9)
    assert rereads.due(14.95) == (VM,)
    rereads.read(VM, None, 15.0)
    assert rereads.due(60.0) == ()


WHOLE, OF_HOSTS, STATISTICS, DETAILS = (
    ReconciliationScope.WHOLE, ReconciliationScope.HOSTS,
    ReconciliationScope.STATISTICS, ReconciliationScope.DETAILS,
)  # fmt: skip
SETTINGS = InventorySettings(
    hosts_interval_seconds=15, vms_interval_seconds=60, statistics_interval_seconds=40,
    details_interval_seconds=600,
)  # fmt: skip
WITH_STATISTICS = Demands(statistics=frozenset({HOST_STATISTICS}))
WITH_DISKS = Demands(details=Detail.DISKS)


def schedule(*scopes: ReconciliationScope) -> Reconciliations:
    """Those that are read one after another; without names, the topology and what is measured."""
    usual = (WHOLE, OF_HOSTS, STATISTICS)
    made = reconciliations(SETTINGS)
    return {scope: made[scope] for scope in scopes or usual}


def done(made: Reconciliations, scope: ReconciliationScope, now: float) -> None:
    """As the service takes note of a reading."""
    made[scope].began = now
    if scope is WHOLE:
        made[OF_HOSTS].began = now


def read_until(
    made: Reconciliations, until: float, needs: Demands
) -> list[tuple[float, ReconciliationScope]]:
    """Make every reading as soon as it is due, each in no time."""
    now, found = 0.0, []
    while now <= until:
        scope, pause = next_reading(made, needs, now)
        if scope is not None:
            done(made, scope, now)
            found.append((now, scope))
        else:
            now += pause
    return found


def test_each_scope_has_its_interval_and_a_whole_reading_has_the_hosts_in_it() -> None:
    made = schedule()
    made[WHOLE].require(0.0)
    scopes = (WHOLE, OF_HOSTS, OF_HOSTS, OF_HOSTS, WHOLE, OF_HOSTS, OF_HOSTS)
    assert read_until(made, 100.0, NO_DEMANDS) == [*zip(range(0, 100, 15), scopes, strict=True)]


def test_statistics_wait_for_a_reader_but_not_for_ever() -> None:
    made = schedule(STATISTICS)
    statistics = made[STATISTICS]
    scope, pause = next_reading(made, WITH_STATISTICS, 1000.0)
    assert (scope, pause > 0) == (None, True), "nothing is due before the first demand"
    statistics.require(0.0)
    assert [now for now, _ in read_until(made, 500.0, WITH_STATISTICS)] == [0.0, 200.0, 400.0]
    statistics.asked_at = 501.0
    assert [next_reading(made, WITH_STATISTICS, now)[0] for now in (439.0, 501.0)] == [None, STATISTICS]
    statistics.began, statistics.asked_at = 501.0, 520.0
    assert next_reading(made, WITH_STATISTICS, 520.0) == (None, 21.0)


def test_a_demand_is_met_only_by_a_reading_that_began_later() -> None:
    made = schedule()
    woken: list[bool] = []
    whole = made[WHOLE]
    whole.wake = lambda: woken.append(True)
    whole.require(0.0)
    done(made, WHOLE, 1.0)
    whole.require(2.0)
    assert len(woken) == 2
    done(made, WHOLE, 1.9)
    assert next_reading(made, NO_DEMANDS, 3.0)[0] is WHOLE
    done(made, WHOLE, 2.0)
    assert next_reading(made, NO_DEMANDS, 3.0)[0] is None


def test_details_are_read_at_long_intervals_and_at_once_when_others_are_needed() -> None:
    made = schedule(DETAILS)
    made[DETAILS].require(0.0)
    assert read_until(made, 10_000.0, WITH_STATISTICS) == [], "nothing needs them"
    assert read_until(made, 700.0, WITH_DISKS) == [(0.0, DETAILS), (600.0, DETAILS)]
    made[DETAILS].require(701.0, more=True)
    assert next_reading(made, WITH_DISKS, 702.0)[0] is DETAILS


PACE = InventorySettings(interval_seconds=5.0, max_age_seconds=0.5)


def test_a_decision_quickens_the_pace_for_a_while() -> None:
    assert seconds_between_turns(PACE, 0.0, float("inf")) == 5.0
    in_burst = seconds_between_turns(PACE, 0.0, 0.0)
    assert in_burst == seconds_between_turns(PACE, 0.0, BURST_SECONDS - 0.1) < 0.5
    assert seconds_between_turns(PACE, 0.0, BURST_SECONDS) == 5.0
    assert seconds_between_turns(PACE, 3.0, 0.0) == in_burst, (
        "an engine that takes long is asked no more often"
    )


@pytest.mark.parametrize("took", [0.01, 0.05, 0.1, 0.15])
def test_no_decision_of_a_burst_waits_for_a_version_that_takes_a_while(took: float) -> None:
    """As old as it gets a version is when the next one is there, which is begun before by what it takes."""
    assert seconds_between_turns(PACE, took, 0.0) + took < 0.5
    assert seconds_between_turns(PACE, took, 0.0) >= 2 * took, "half of the time is left to decisions"


def test_a_decision_at_rest_costs_one_request_and_who_waits_for_a_change_none(
    engine: EngineServer, tmp_path: Path
) -> None:
    file = configured(tmp_path, engine)
    config = loaded(file)
    with running(file) as service:
        first = inventory.snapshot(config=config, max_age=600)
        assert [vm.name for vm in first.vms if vm.host is None] == ["vmski1"]
        before = len(engine.requests)
        assert inventory.snapshot(config=config, max_age=600) is first  # not even decoded again
        assert not inventory.wait_for_change(0.3, config=config)
        assert len(engine.requests) == before
        inventory.snapshot(config=config, max_age=0.1, deadline=30)
        assert [request.partition("?")[0] for request in engine.requests[before:]] == ["/events"]
        ended(service)
