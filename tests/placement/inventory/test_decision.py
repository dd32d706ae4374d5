"""A unit waits for the engine a moment at most: then what was known last decides."""

from __future__ import annotations

import time

import pytest

from ovirt_placement.config import InventorySettings
from ovirt_placement.inventory.decision import Awaited, Base, Decision, Decisions, NoSnapshot
from ovirt_placement.inventory.publication import now
from ovirt_placement.model import Snapshot
from tests.builders import host, snapshot, vm

STATE = snapshot(host("h1"), host("h2"), vm("a"), vm("b"))


class Source:
    """What was known last, and what comes when it is waited for."""

    def __init__(self, state: Snapshot | None = None, seconds_ago: float = 0.0) -> None:
        self.known = None if state is None else Base(state, now() - seconds_ago)
        #: Each moment until which somebody waited.
        self.waits: list[float] = []
        self.next: Base | None = None

    def base(self, max_age: float, until: float, vm: str | None = None, *, patient: bool = True) -> Base:
        if (
            self.known is not None
            and vm is not None
            and vm not in self.known.snapshot.vm_by_id
            and not patient
        ):
            raise Awaited("awaited")
        if self.known is not None and now() - self.known.as_of <= max_age:
            return self.known
        self.waits.append(until - time.monotonic())
        if self.next is None:
            raise NoSnapshot("the engine does not answer")
        self.known = self.next
        return self.next

    def as_of(self) -> float | None:
        return None if self.known is None or self.known.saved else self.known.as_of

    def last(self) -> Base | None:
        return self.known


def decisions(source: Source, engine_wait_ms: float = 300.0) -> Decisions:
    return Decisions(source, InventorySettings(engine_wait_ms=engine_wait_ms, longest_age_seconds=60.0))


def about(asked: Decisions, vm: str | None = None, *, missing: bool = False) -> Decision:
    return asked.about(vm, missing=missing, patient=False, first_seconds=7.0)


def test_what_was_known_last_decides_where_nothing_fresher_comes() -> None:
    found = about(decisions(Source(STATE, seconds_ago=20)))
    assert found.confirmed is STATE
    assert 20 <= found.age_seconds < 30


def test_after_a_wait_in_vain_the_engine_is_not_waited_for() -> None:
    source = Source(STATE, seconds_ago=20)
    asked = decisions(source)
    for _ in range(100):
        about(asked)
    (wait,) = source.waits
    assert 0.2 < wait <= 0.3


def test_where_nothing_is_known_a_wait_in_vain_is_not_followed_by_another() -> None:
    """Each would hold a thread of the engine, which has none left then to be read by."""
    source = Source()
    asked = decisions(source)
    for _ in range(10):
        with pytest.raises(NoSnapshot):
            about(asked)
    assert len(source.waits) == 1
    source.known = Base(STATE, now())
    assert about(asked).confirmed is STATE


def test_a_reading_is_awaited_longer_where_there_is_only_what_was_saved() -> None:
    source = Source(STATE, seconds_ago=20)
    source.known = Base(STATE, now() - 20, saved=True)
    asked = decisions(source)
    assert [about(asked).base.saved for _ in range(3)] == [True] * 3
    (wait,) = source.waits
    assert 6.5 < wait <= 7.0
    source.known = Base(STATE, now())
    assert not about(asked).base.saved


def test_something_fresher_ends_that() -> None:
    source = Source(STATE, seconds_ago=20)
    asked = decisions(source)
    about(asked)
    source.known = Base(STATE, now() - 10)
    about(asked)
    assert len(source.waits) == 2


def test_what_is_too_old_decides_nothing() -> None:
    with pytest.raises(NoSnapshot, match="the engine does not answer"):
        about(decisions(Source(STATE, seconds_ago=61)))


@pytest.mark.parametrize(("engine_wait_ms", "seconds"), [(300.0, 7.0), (9000.0, 9.0)])
def test_the_first_state_is_waited_for_longer_and_never_shorter(
    engine_wait_ms: float, seconds: float
) -> None:
    source = Source()
    with pytest.raises(NoSnapshot):
        about(decisions(source, engine_wait_ms))
    assert seconds - 1.0 < source.waits[0] <= seconds


def test_a_vm_that_is_not_shown_is_awaited() -> None:
    asked = decisions(Source(STATE))
    assert not about(asked, "new").awaited
    assert about(asked, "new", missing=True).awaited
    assert not about(asked, "a", missing=True).awaited


def test_filters_see_what_is_confirmed_and_weights_what_is_expected() -> None:
    asked = decisions(Source(STATE))
    about(asked).accepted.leave_accepted("AffinityFilter", STATE.vm_by_id["a"], ["h2"], now())
    later = about(asked)
    assert later.confirmed.pending == ()
    assert [(one.vm, one.host, one.expected) for one in later.snapshot.pending] == [("a", "h2", True)]
    assert later.snapshot.unconfirmed == {"a"}
