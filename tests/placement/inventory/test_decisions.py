"""Decisions: how long they wait, what is expected of those before, what a person asks, what units answer."""

import logging
import time
from math import inf

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.config import InventorySettings
from ovirt_placement.inventory.decision import Accepted, Awaited, Base, Decisions, NoSnapshot
from ovirt_placement.inventory.publication import Decide, Method, now, question_decoder
from ovirt_placement.model import Snapshot
from ovirt_placement.units.decisions import Decider, Overload
from tests.builders import APART, SOFT_APART, cluster, group, host, key, snapshot, vm
from tests.clock import Clock
from tests.placement.rules.placement_keys.nodes import keyed

STATE = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("new"), group("g", APART, "a new"))


class Source:
    """What was known last; nothing comes when something fresher is waited for."""

    def __init__(
        self,
        state: Snapshot | None = None,
        seconds_ago: float = 0.0,
        *,
        saved: bool = False,
        error: Exception | None = None,
    ) -> None:
        self.known = None if state is None else Base(state, now() - seconds_ago, saved)
        #: Each moment until which somebody waited.
        self.waits: list[float] = []
        self._error = error or NoSnapshot("the engine does not answer")

    def base(self, max_age: float, until: float, vm: str | None = None, *, patient: bool = True) -> Base:
        if self.known is not None:
            if vm is not None and vm not in self.known.snapshot.vm_by_id and not patient:
                raise Awaited("awaited")
            if now() - self.known.as_of <= max_age:
                return self.known
        self.waits.append(until - time.monotonic())
        raise self._error

    def as_of(self) -> float | None:
        return None if self.known is None or self.known.saved else self.known.as_of

    def last(self) -> Base | None:
        return self.known


def decisions(source: Source, engine_wait_ms: float = 300.0) -> Decisions:
    settings = InventorySettings(engine_wait_ms=engine_wait_ms, longest_age_seconds=60.0)
    return Decisions(source, settings, first_seconds=7.0)


def about(asked: Decisions, vm: str | None = None) -> Base:
    return asked.about(vm, patient=False)


def test_what_was_known_last_decides_where_nothing_fresher_comes_and_is_waited_for_once() -> None:
    source = Source(STATE, seconds_ago=20)
    asked = decisions(source)
    for _ in range(100):
        found = about(asked)
        assert found.snapshot is STATE
        assert 20 <= found.age_seconds < 30
    (wait,) = source.waits
    assert 0.2 < wait <= 0.3
    source.known = Base(STATE, now() - 10)  # something fresher ends that
    about(asked)
    assert len(source.waits) == 2
    with pytest.raises(NoSnapshot, match="the engine does not answer"):
        about(decisions(Source(STATE, seconds_ago=61)))


def test_where_nothing_is_known_a_wait_in_vain_is_not_followed_by_another() -> None:
    """Each would hold a thread of the engine, which has none left then to be read by."""
    source = Source()
    asked = decisions(source)
    for _ in range(10):
        with pytest.raises(NoSnapshot):
            about(asked)
    assert len(source.waits) == 1
    source.known = Base(STATE, now())
    assert about(asked).snapshot is STATE


def test_a_reading_is_awaited_longer_where_there_is_only_what_was_saved() -> None:
    source = Source(STATE, seconds_ago=20, saved=True)
    asked = decisions(source)
    assert [about(asked).saved for _ in range(3)] == [True] * 3
    (wait,) = source.waits
    assert 6.5 < wait <= 7.0
    source.known = Base(STATE, now())
    assert not about(asked).saved


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
    assert [about(asked, name).awaited for name in ("unknown", "a")] == [True, False]


HOSTS = ("h1", "h2", "h3")
HOSTS_STATE = snapshot(*(host(name) for name in HOSTS), vm("a"), vm("b"), vm("c", "h3"))
A, B, C = (HOSTS_STATE.vm_by_id[name] for name in "abc")
LONGEST = 30.0


@pytest.fixture
def accepted() -> Accepted:
    return Accepted(LONGEST)


def places(found: Snapshot) -> dict[str, str]:
    """Where VMs are expected."""
    return {one.vm: one.host for one in found.pending if one.expected}


def with_vm(state: Snapshot, name: str, **changes: object) -> Snapshot:
    return replace(state, vms=tuple(replace(one, **changes) if one.id == name else one for one in state.vms))


def over(accepted: Accepted, at: float, base: Snapshot = HOSTS_STATE, asked: str | None = None) -> Snapshot:
    return accepted.over(base, at, at, asked)


def test_the_one_host_that_is_left_is_expected(accepted: Accepted) -> None:
    accepted.leave_accepted("F", A, ["h2", "h1"], 10.0)
    accepted.leave_accepted("G", A, ["h2", "h3"], 10.1)
    assert places(over(accepted, 10.2)) == {"a": "h2"}


def test_of_several_the_best_by_our_ranks_is_expected(accepted: Accepted) -> None:
    state = snapshot(cluster(policy={"preferred_hosts_weight": 2}), *HOSTS_STATE.hosts, A, B)
    accepted.leave_ranks("W", A, HOSTS, [2, 0, 1], 3, 10.0)
    assert places(over(accepted, 10.1, state)) == {"a": "h2"}
    accepted.leave_ranks("W", B, HOSTS, [2, 0, 1], 9, 10.2)
    assert places(over(accepted, 10.3, state))["b"] == "h2"


def test_where_ours_tie_free_memory_decides_less_what_is_expected_there(accepted: Accepted) -> None:
    hosts = host("h1", free_mb=9000), host("h2", free_mb=10000), host("h3", free_mb=5000)
    policy = cluster(policy={"even_memory_weight": 1})
    state = snapshot(policy, *hosts, vm("a", needs_mb=2000), vm("b", needs_mb=2000))
    for number, name in enumerate("ab"):
        accepted.leave_ranks("W", state.vm_by_id[name], HOSTS, [0, 0, 0], 1, 10.0 + number)
    assert places(over(accepted, 12.0, state)) == {"a": "h2", "b": "h1"}


def test_many_hosts_of_a_filter_alone_say_nothing(accepted: Accepted) -> None:
    accepted.leave_accepted("F", A, [f"h{number}" for number in range(9)], 10.0)
    accepted.leave_accepted("F", B, ["h1", "h2"], 10.0)
    assert over(accepted, 10.1) is HOSTS_STATE


def test_a_vm_that_is_asked_about_is_not_looked_at_yet_and_the_same_expected_is_one_state(
    accepted: Accepted,
) -> None:
    accepted.leave_accepted("F", A, ["h2"], 10.0)
    assert places(over(accepted, 10.1, asked="a")) == {}
    first = over(accepted, 10.2, asked="b")
    assert places(first) == {"a": "h2"}
    assert over(accepted, 10.2) is first
    accepted.leave_accepted("F", B, ["h1"], 10.3)
    assert over(accepted, 10.4) is not first


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a", {"host": "h2"}),
        ("b", {"host": "h3"}),
        ("c", {"migrating_to": "h1", "status": "migrating"}),  # elsewhere
    ],
)
def test_what_the_engine_shows_ends_it(accepted: Accepted, name: str, shown: dict[str, str]) -> None:
    accepted.leave_accepted("F", HOSTS_STATE.vm_by_id[name], ["h2"], 10.0)
    assert places(over(accepted, 10.1)) == {name: "h2"}
    assert over(accepted, 10.2, with_vm(HOSTS_STATE, name, **shown)).pending == ()


def test_a_vm_that_stays_down_is_expected_until_its_start_would_show(accepted: Accepted) -> None:
    accepted.leave_accepted("F", A, ["h2"], 10.0)
    down = with_vm(HOSTS_STATE, "a", status="down")
    assert [places(accepted.over(down, at, at + 0.1)) for at in (14.9, 15.1)] == [{"a": "h2"}, {}]


def test_nothing_is_expected_for_longer_than_allowed(accepted: Accepted) -> None:
    waiting = with_vm(HOSTS_STATE, "a", status="wait_for_launch")
    accepted.leave_accepted("F", A, ["h2"], 10.0)
    assert [places(over(accepted, at, waiting)) for at in (39.9, 40.1)] == [{"a": "h2"}, {}]


def test_an_intent_of_the_enforcer_is_known_better(accepted: Accepted) -> None:
    accepted.leave_accepted("F", C, ["h1"], 10.0)
    (expected,) = over(accepted, 10.1).pending
    meant = replace(HOSTS_STATE, pending=(replace(expected, host="h2", expected=False),))
    assert [one.host for one in over(accepted, 10.2, meant).pending] == ["h2"]


def test_events_say_where_it_went_or_that_it_did_not(accepted: Accepted) -> None:
    for name in "ab":
        accepted.leave_accepted("F", HOSTS_STATE.vm_by_id[name], ["h2"], 10.0)
    over(accepted, 10.1)
    accepted.heard("a", "h1", 10.2, 10.3)
    accepted.heard("b", None, 9.0, 10.3)  # of a start before
    assert places(over(accepted, 10.4)) == {"a": "h1", "b": "h2"}
    accepted.heard("b", None, 10.5, 10.5)
    assert places(over(accepted, 10.6)) == {"a": "h1"}


def test_another_decision_about_a_vm_begins_again_and_one_for_the_present_host_moves_none(
    accepted: Accepted,
) -> None:
    accepted.leave_accepted("F", C, ["h3"], 10.0)
    assert over(accepted, 10.1) is HOSTS_STATE
    accepted.leave_accepted("F", A, ["h2"], 10.2)
    over(accepted, 10.3)
    accepted.leave_accepted("F", A, ["h1"], 12.0)
    assert places(over(accepted, 12.1)) == {"a": "h1"}


def test_filters_see_what_is_confirmed_and_weights_what_is_expected() -> None:
    vms = vm("a"), vm("b")
    groups = group("hard", APART, "a b"), group("soft", SOFT_APART, "a b")
    decisions = Decisions(Source(snapshot(host("h1"), host("h2"), *vms, *groups)), InventorySettings())
    decisions.accepted.leave_accepted("AffinityFilter", vms[0], ["h2"], now())
    decide = Decider(decisions)
    assert decide(Decide("filter", "AffinityFilter", ["h1", "h2"], "b")).hosts == ["h1", "h2"]
    one, other = decide(Decide("score", "SoftAffinityWeight", ["h1", "h2"], "b")).ranks
    assert one < other


@pytest.mark.parametrize(("method", "unit"), [("filter", "AffinityFilter"), ("score", "SoftAffinityWeight")])
def test_only_what_the_engine_asks_is_expected(method: Method, unit: str) -> None:
    """Not what a person asks, nor a VM's present host among others, of which the engine never asks."""
    for vm_id, by_hand, news in (("new", False, True), ("new", True, False), ("a", False, False)):
        decisions = Decisions(Source(STATE), InventorySettings())
        decided = Decider(decisions)(Decide(method, unit, ["h1", "h2"], vm_id, by_hand=by_hand))
        assert (decided.failure, decided.hosts != []) == (None, True)
        assert decisions.accepted.has_news is news


def test_hosts_between_which_keys_find_no_difference_are_drawn_each_time() -> None:
    state = keyed(host("h1"), host("h2"), vm("new"), keys=(key("#LOAD", 0.0, 1.0, resource="new"),))
    decide = Decider(Decisions(Source(state), InventorySettings()))
    first: set[int] = set()
    while first != {0, 1}:  # that it never ends is as likely as that no one ever wins a lottery
        first.add(decide(Decide("score", "PlacementKeyWeight", ["h1", "h2"], "new")).ranks.index(0))


def test_a_unit_that_there_is_not_is_no_failure_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    decide = Decider(Decisions(Source(STATE), InventorySettings()))
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
    decide = Decider(Decisions(Source(STATE, saved=True), InventorySettings()))
    assert decide(Decide("filter", "AffinityFilter", ["h1", "h2"], "new")).hosts == ["h2"]
    found = decide(Decide("filter", "AffinityFilter", ["h1"], "new"))
    assert found.hosts == []
    assert "saved" in str(found.failure)


_SOME = st.sets(st.sampled_from(HOSTS))
LOOKS = st.lists(st.tuples(st.integers(0, 600), _SOME.filter(bool), _SOME), min_size=2, max_size=6)


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
