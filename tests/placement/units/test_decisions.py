"""Decisions: what a person asks leaves nothing behind; and for how long hosts have been overloaded."""

import logging
from math import inf

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ovirt_placement.config import InventorySettings
from ovirt_placement.inventory.decision import Base, Decisions
from ovirt_placement.inventory.publication import Decide, Method, now, question_decoder
from ovirt_placement.model import Snapshot
from ovirt_placement.units.decisions import Decider, Overload
from tests.builders import APART, SOFT_APART, group, host, snapshot, vm
from tests.clock import Clock

STATE = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("new"), group("g", APART, "a new"))


class Source:
    """A state that is as fresh as can be, unless it was saved, or none can be had."""

    def __init__(
        self, state: Snapshot = STATE, *, saved: bool = False, error: Exception | None = None
    ) -> None:
        self.state, self._saved, self._error = state, saved, error

    def base(self, max_age: float, until: float, vm: str | None = None, *, patient: bool = True) -> Base:
        if self._error is not None:
            raise self._error
        return self.last()

    def as_of(self) -> float | None:
        return now()

    def last(self) -> Base:
        return Base(self.state, now(), saved=self._saved)


def test_filters_see_what_is_confirmed_and_weights_what_is_expected() -> None:
    vms = vm("a"), vm("b")
    groups = group("hard", APART, "a b"), group("soft", SOFT_APART, "a b")
    source = Source(snapshot(host("h1"), host("h2"), *vms, *groups))
    decisions = Decisions(source, InventorySettings())
    decisions.accepted.leave_accepted("AffinityFilter", source.state.vm_by_id["a"], ["h2"], now())
    decide = Decider(decisions)
    assert decide(Decide("filter", "AffinityFilter", ["h1", "h2"], "b")).hosts == ["h1", "h2"]
    one, other = decide(Decide("score", "SoftAffinityWeight", ["h1", "h2"], "b")).ranks
    assert one < other


@pytest.mark.parametrize(("method", "unit"), [("filter", "AffinityFilter"), ("score", "SoftAffinityWeight")])
@pytest.mark.parametrize("by_hand", [False, True], ids=["engine", "person"])
def test_only_what_the_engine_asks_is_expected(method: Method, unit: str, by_hand: bool) -> None:
    decisions = Decisions(Source(), InventorySettings())
    decide = Decider(decisions)
    decided = decide(Decide(method, unit, ["h1", "h2"], "new", by_hand=by_hand))
    assert (decided.failure, decided.hosts != []) == (None, True)
    assert decisions.accepted.has_news is not by_hand
    # Nor of a VM with its present host among the hosts, which the engine never asks about.
    others = Decisions(Source(), InventorySettings())
    Decider(others)(Decide(method, unit, ["h1", "h2"], "a"))
    assert not others.accepted.has_news


def test_a_unit_that_there_is_not_is_no_failure_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    decide = Decider(Decisions(Source(), InventorySettings()))
    found = decide(Decide("filter", "no such unit", ["h1"], "new"))
    assert found.failure == "there is no unit 'no such unit'"
    assert not caplog.records
    with pytest.raises(msgspec.ValidationError):
        question_decoder.decode(b'{"type": "decide", "method": "x", "unit": "u"}')


def test_of_failures_without_end_a_few_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    decide = Decider(Decisions(Source(error=RuntimeError("no reason")), InventorySettings()))
    for _ in range(100):
        assert decide(Decide("filter", "AffinityFilter", ["h1"], "new")).failure == "RuntimeError: no reason"
    assert len([one for one in caplog.records if one.levelno >= logging.ERROR]) == 5


def test_a_state_that_was_saved_before_a_restart_refuses_no_start() -> None:
    decide = Decider(Decisions(Source(saved=True), InventorySettings()))
    assert decide(Decide("filter", "AffinityFilter", ["h1", "h2"], "new")).hosts == ["h2"]
    found = decide(Decide("filter", "AffinityFilter", ["h1"], "new"))
    assert found.hosts == []
    assert "saved" in str(found.failure)


HOSTS = ("h1", "h2", "h3")
#: Seconds since the look before, the hosts that are asked about, and those that are busy.
LOOKS = st.lists(
    st.tuples(
        st.integers(0, 600), st.sets(st.sampled_from(HOSTS), min_size=1), st.sets(st.sampled_from(HOSTS))
    ),
    min_size=2,
    max_size=6,
)


@given(LOOKS)
@example([(0, {"h1"}, {"h1"}), (60, {"h2"}, set()), (60, {"h1"}, {"h1"})])
def test_a_host_is_overloaded_since_the_first_look_at_it_that_showed_that(
    looks: list[tuple[int, set[str], set[str]]],
) -> None:
    """Until a look shows the contrary: one that is not asked about meanwhile stays as it was."""
    clock = Clock(1000.0)
    overload = Overload(clock)
    since: dict[str, float] = {}
    for number, (seconds, asked, busy) in enumerate(looks):
        clock.now += seconds
        state = snapshot(*(host(name, cpu_percent=95 if name in busy else 5) for name in HOSTS))
        found = overload.minutes(state, tuple(sorted(asked)), {})
        for name in asked:
            if name not in busy:
                since.pop(name, None)
            else:
                since.setdefault(name, clock.now if number else -inf)
        expected = {name: (clock.now - since[name]) / 60 for name in asked & busy}
        assert found == pytest.approx(expected)
