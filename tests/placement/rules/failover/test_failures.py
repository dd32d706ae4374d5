"""All sets at once: what falls into parts that do not meet is not looked at; counts are those of a list."""

from itertools import combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ovirt_placement.model import RuleDomain, Snapshot
from ovirt_placement.rules.elements.assignment import Budget
from ovirt_placement.rules.failover.check import Starts, check
from ovirt_placement.rules.failover.failures import judge_failures
from ovirt_placement.rules.failover.measures import one_by_one
from ovirt_placement.rules.failover.outcomes import Domain, Outcome, Size, sets_without, whole_domains
from ovirt_placement.rules.failover.restart_check import RestartCheck
from tests.builders import APART, CLUSTER, TOGETHER, Part, group, host, rule, snapshot, vm
from tests.examples import examples
from tests.placement.rules.failover.restarting import lost_sets, passes, smallest, survives
from tests.placement.rules.failover.test_check import ha

MANY = 1_000_000
OTHERS = RuleDomain(name="d", hosts=("h2", "h3"))


class Watched(Starts):
    """Shows which failures it had to judge."""

    def __init__(self, state: Snapshot) -> None:
        super().__init__(state, CLUSTER)
        self.judged: list[tuple[str, ...]] = []

    def judge(self, failed: tuple[str, ...], budget: Budget) -> Outcome:
        self.judged.append(failed)
        return super().judge(failed, budget)


def test_only_sets_whose_parts_meet_are_looked_at() -> None:
    hosts = [host(f"h{number}", free_mb=5000 - number) for number in range(40)]
    vms = [ha(f"v{number}", f"h{number}") for number in range(40)]
    state = snapshot(*hosts, *vms)
    measure = Watched(state)
    found = judge_failures(state, measure, 3, MANY)
    assert found.safe is True
    assert found.sizes == (Size(1, 40, 0), Size(2, 780, 0), Size(3, 9880, 0))
    assert len(measure.judged) < 240


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([host("h3"), vm("b", "h2"), group("g", TOGETHER, "a b")], id="a peer"),
        pytest.param(
            [
                host("h3", free_mb=0),
                vm("b", "h2", needs_mb=8000, status="migrating", migrating_to="h3", cpu_pinning="dedicated"),
            ],
            id="a VM on its way",
        ),
        pytest.param(
            [host("h3"), vm("b", "h2"), rule("r", "at_most_per_domain", "a b", most=1, domains=(OTHERS,))],
            id="a rule",
        ),
    ],
)
def test_the_same_start_is_judged_again_where_what_fails_elsewhere_matters(parts: list[Part]) -> None:
    state = snapshot(host("h1"), host("h2"), ha("a", "h1"), *parts)
    starts = RestartCheck(state, CLUSTER)
    settled = not state.pending_hosts
    assert not starts.passes(frozenset({"h1"}), {"a": "h3"}, settled=True)
    assert starts.passes(frozenset({"h1", "h2"}), {"a": "h3"}, settled=settled)


def sets_by_list(members: int, size: int, bad: list[tuple[int, ...]]) -> int:
    sets = combinations(range(members), size)
    return sum(not any(set(one) <= set(chosen) for one in bad) for chosen in sets)


@given(
    st.integers(1, 9),
    st.integers(1, 5),
    st.lists(st.sets(st.integers(0, 8), min_size=1, max_size=3).map(sorted).map(tuple), max_size=8),
)
def test_sets_are_counted_as_if_they_were_listed(members: int, size: int, bad: list[tuple[int, ...]]) -> None:
    known = [one for one in bad if one[-1] < members]
    assert sets_without(members, size, known) == sets_by_list(members, size, known)


def test_a_count_of_too_many_sets_is_a_lower_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ovirt_placement.rules.failover.outcomes.MOST_LOOKED_AT", 1)
    bad = [(0, 1), (1, 2), (2, 3)]
    assert 0 < sets_without(9, 3, bad) <= sets_by_list(9, 3, bad)


NAMES = tuple(f"h{number}" for number in range(6))


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Little room, so that homes of different hosts get in each other's way; ties across all hosts."""
    vms = [f"v{number}" for number in range(draw(st.integers(2, 6)))]
    members = st.sets(st.sampled_from(vms), min_size=2, max_size=3).map(lambda some: " ".join(sorted(some)))
    placed = [(name, draw(st.sampled_from(NAMES))) for name in vms]
    moving = draw(st.sampled_from([None, None, *placed]))
    to = draw(st.sampled_from(NAMES))
    return snapshot(
        *(host(name, free_mb=draw(st.sampled_from([0, 1000, 2000, 3000, 5000]))) for name in NAMES),
        *(
            ha(
                name,
                on,
                draw(st.sampled_from([1000, 1000, 2000])),
                guaranteed_mb=0,
                **({"status": "migrating", "migrating_to": to} if moving == (name, on) and to != on else {}),
            )
            for name, on in placed
        ),
        *(
            group(f"g{number}", draw(st.sampled_from([TOGETHER, APART, APART])), draw(members))
            for number in range(draw(st.integers(0, 3)))
        ),
    )


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(clusters())
def test_any_three_hosts_agree_with_every_order_of_starts(state: Snapshot) -> None:
    found = check(state, CLUSTER, 3)
    sets = [failed for size in (1, 2, 3) for failed in combinations(NAMES, size)]
    lost = smallest(lost_sets(state, NAMES, 3))
    assert sorted(loss.hosts for loss in found.losses) == sorted(lost)
    # Of what arrives meanwhile more may be lost: then none is claimed.
    assert found.failures_survived == (0 if found.doubt else min(map(len, lost), default=4) - 1)
    assert (found.unjudged, found.unknown) == (0, ())
    assert found.survived == sum(not any(set(one) <= set(failed) for one in lost) for failed in sets)


@st.composite
def parted(draw: st.DrawFn) -> tuple[Snapshot, tuple[Domain, ...]]:
    """A cluster whose hosts stand in domains, of which some share hosts."""
    domains = draw(st.lists(st.sets(st.sampled_from(NAMES), min_size=1, max_size=3), min_size=1, max_size=4))
    return draw(clusters()), tuple(Domain(f"d{at}", frozenset(one)) for at, one in enumerate(domains))


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(parted(), st.integers(1, 2))
def test_domains_fail_whole(drawn: tuple[Snapshot, tuple[Domain, ...]], failures: int) -> None:
    state, domains = drawn
    found = check(state, CLUSTER, failures, domains=domains)
    hosts_of = {one.name: one.hosts for one in domains}
    sets = [some for size in range(1, failures + 1) for some in combinations(sorted(hosts_of), size)]
    lost = [
        some
        for some in sets
        if not survives(state, tuple(sorted(frozenset().union(*(hosts_of[name] for name in some)))))
    ]
    assert sorted(loss.domains for loss in found.losses) == sorted(smallest(lost))
    assert (found.safe is False) is bool(lost)
    for one in found.survivals:
        assert passes(state, one.hosts, one.homes)


def test_domain_has_the_hosts_that_are_up() -> None:
    domains = (Domain("rack1", frozenset({"h3", "h1", "gone"})), Domain("rack2", frozenset({"gone"})))
    (only,) = whole_domains(domains, ("h1", "h2", "h3"))
    assert (only.hosts, only.domain) == (("h1", "h3"), "rack1")


def crowded(hosts: int) -> Snapshot:
    """Every host's VM reckons with one of two spare hosts, which hold three each."""
    spare = [host(f"spare{number}", free_mb=3 * 4096) for number in (1, 2)]
    full = [host(f"h{number}", free_mb=0) for number in range(hosts)]
    return snapshot(*spare, *full, *(ha(f"v{number}", f"h{number}") for number in range(hosts)))


@pytest.mark.parametrize(
    ("failures", "steps", "sizes"),
    [
        pytest.param(5, 900, {3, 5}, id="with both spare hosts, with one of them"),
        pytest.param(3, 200, {3}, id="none found lost before"),
    ],
)
def test_where_the_steps_end_the_worst_sets_are_looked_for_and_the_rest_is_counted(
    failures: int, steps: int, sizes: set[int]
) -> None:
    state = crowded(12)
    whole = check(state, CLUSTER, failures)
    assert whole.unjudged == 0
    assert {len(loss.hosts) for loss in whole.losses} == sizes
    found = check(state, CLUSTER, failures, steps=steps)
    assert found.unjudged > 0
    assert found.safe is False
    assert found.tightest[0].room_for < 0
    assert found.tightest[0].survived is False
    assert {loss.hosts for loss in found.losses} <= {loss.hosts for loss in whole.losses}
    for part, all_of_it in zip(found.sizes, whole.sizes, strict=True):
        assert part.survived <= all_of_it.survived


@pytest.mark.parametrize("steps", [3, 20, 60, 2000])
def test_what_is_reported_adds_up_wherever_the_steps_end(steps: int) -> None:
    state = crowded(8)
    found = check(state, CLUSTER, 2, steps=steps)
    assert found.survived + found.unjudged + len(found.unknown) == 10 + 45
    assert (found.safe is None) is (found.unjudged + len(found.unknown) > 0)


def test_the_answer_is_the_same_with_any_examiner() -> None:
    """Here somebody who hands tasks out and takes answers back in lumps."""
    state = crowded(6)
    measure = Starts(state, CLUSTER)

    def in_lumps(tasks: Any) -> Any:
        waiting: list[tuple[str, ...]] = list(tasks)
        yield from list(one_by_one(measure, MANY)(waiting))

    mine = judge_failures(state, measure, 4, MANY)
    assert judge_failures(state, measure, 4, MANY, examiner=in_lumps) == mine


def test_far_too_many_sets_that_meet_are_not_even_listed() -> None:
    """All reckon with two spare hosts, so that each of 161,700 sets of three would be looked at."""
    state = crowded(98)
    found = check(state, CLUSTER, 3, steps=20_000)
    assert found.sizes[1] == Size(2, 4950, 0)
    assert found.sizes[2].unjudged > 100_000
    assert found.sizes[2].survived > 500
