"""What is read again after events, by a simulated clock: the view comes to hold what the engine holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.inventory.service.events import reported_by
from ovirt_placement.inventory.service.follower import LATEST_SECONDS, Feed
from ovirt_placement.inventory.service.schedule import (
    LATER_SECONDS,
    SOON_SECONDS,
    Rereads,
    Subject,
    SubjectKind,
)
from ovirt_placement.model import Vm
from tests import builders as build
from tests.placement.inventory.events import event

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
        for one in self.feed.take_page(self.engine.page(self.feed, now), now):
            for reported in reported_by(one):
                if reported.effect is None:
                    self.rereads.ask(reported.subject, now)
                else:
                    self.rereads.await_effect(reported.subject, reported.effect, now)
        if VM in self.rereads.due(now):
            self.seen = self.engine.shown(now)
            self.readings += 1
            self.rereads.read(VM, self.engine.states[self.seen][1], now)


@dataclass(frozen=True)
class Step:
    pause: float
    choice: int
    lag: float
    late: float


def steps(lag: float, late: float, pause: float = 0.0) -> st.SearchStrategy[list[Step]]:
    return st.lists(
        st.builds(
            Step, st.floats(pause, pause + 4), st.integers(0, 5), st.floats(0, lag), st.floats(0, late)
        ),
        min_size=1,
        max_size=12,
    )


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
    reader, now = Reader(engine), 0.0
    bound = end_of(engine) + SOON_SECONDS + 2 * max(pauses)
    while now < bound:
        for pause in pauses:
            now += pause
            reader.turn(now)
    assert engine.states[reader.seen][1] == engine.last


@given(steps(lag=LATER_SECONDS - 0.01, late=1.0, pause=LATER_SECONDS), turns)
def test_a_state_is_seen_in_the_first_turn_in_which_it_and_its_event_show(
    history: list[Step], pauses: list[float]
) -> None:
    engine = lived(history)
    reader, now = Reader(engine), 0.0
    while now < end_of(engine) + LATER_SECONDS:
        for pause in pauses:
            now += pause
            reader.turn(now)
            shown = engine.shown(now)
            if shown and engine.events[shown - 1][0] <= now:
                assert reader.seen == shown


@given(steps(lag=0.5, late=0.5), turns)
def test_when_nothing_happens_any_more_nothing_is_read(history: list[Step], pauses: list[float]) -> None:
    engine = lived(history)
    reader, now = Reader(engine), 0.0
    while now < end_of(engine) + LATER_SECONDS + 2 * max(pauses):
        for pause in pauses:
            now += pause
            reader.turn(now)
    readings = reader.readings
    for _ in range(20):
        now += 1.0
        reader.turn(now)
    assert reader.readings == readings


def test_an_unknown_effect_is_looked_for_at_once_soon_and_later() -> None:
    rereads, readings = Rereads(), []
    rereads.ask(VM, 10.0)
    for tenth in range(100, 200):
        now = tenth / 10
        if rereads.due(now):
            readings.append(now)
            rereads.read(VM, build.vm("v"), now)
    assert readings == [10.0, 11.0, 15.0]


def test_an_effect_that_shows_is_confirmed_soon_and_no_more() -> None:
    rereads, readings = Rereads(), []
    rereads.await_effect(VM, lambda found: found is None, 10.0)
    for tenth in range(100, 200):
        now = tenth / 10
        if rereads.due(now):
            readings.append(now)
            rereads.read(VM, build.vm("v") if now < 10.35 else None, now)
    assert readings == [10.0, 10.1, 10.2, 10.3, 10.4, 11.0]


def test_an_effect_that_never_shows_is_given_up() -> None:
    rereads = Rereads()
    rereads.await_effect(VM, lambda found: False, 10.0)
    rereads.read(VM, None, 14.9)
    assert rereads.due(14.95) == (VM,)
    rereads.read(VM, None, 15.0)
    assert rereads.due(60.0) == ()


def test_a_reading_that_failed_is_due_still() -> None:
    rereads = Rereads()
    rereads.ask(VM, 10.0)
    assert rereads.due(10.0) == rereads.due(10.5) == (VM,)
