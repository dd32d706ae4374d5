"""Rolling maintenance of tiny clusters: no plan is better, and no bound above the best, by brute force."""

from collections.abc import Collection, Iterator, Sequence
from heapq import heappop, heappush
from itertools import combinations, count
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.maintenance import exact as bounds
from ovirt_placement.planning.maintenance.planner import plan_maintenance
from ovirt_placement.planning.maintenance.site import MaintenanceOptions, MaintenancePlan
from tests.examples import examples
from tests.placement.planning.brute_force import Assignment, BruteForce
from tests.placement.planning.clusters import tiny_clusters

Point = tuple[Assignment, frozenset[str]]
#: Hosts that get no round, rounds, migrations.
Cost = tuple[int, int, int]


class Rolling(BruteForce):
    """Hosts that are away at first may be targets once they are done."""

    def __init__(self, state: Snapshot, asked: Collection[str], at_once: int) -> None:
        self.away = {host.id for host in state.hosts if host.status != "up"}
        up = tuple(replace(host, status="up") for host in state.hosts)
        super().__init__(replace(state, hosts=up))
        self.asked = frozenset(asked)
        self.at_once = at_once

    def best(self) -> Cost:  # type: ignore[override]
        start: Point = self.start, frozenset()
        costs = {start: (0, 0)}
        number = count()
        queue = [((0, 0), next(number), start)]
        while queue:
            cost, _, point = heappop(queue)
            if cost > costs[point]:
                continue
            if point[1] == self.asked:
                break
            for after, more in self.onwards(point):
                reached = cost[0] + more[0], cost[1] + more[1]
                if reached < costs.get(after, (10**9, 0)):
                    costs[after] = reached
                    heappush(queue, (reached, next(number), after))
        return min((len(self.asked - done), *cost) for (_, done), cost in costs.items())

    def onwards(self, point: Point) -> Iterator[tuple[Point, tuple[int, int]]]:
        at, done = point
        empty = sorted(self.asked - done - set(at))
        for size in range(1, self.at_once + 1):
            for hosts in combinations(empty, size):
                yield (at, done.union(hosts)), (1, 0)
        for after, cost in self.migrations_when(at, done):
            yield (after, done), (0, cost)

    def migrations_when(self, at: Assignment, done: frozenset[str]) -> Iterator[tuple[Assignment, int]]:
        shut = self.away - done
        for after, cost in self.migrations(at):
            if all(new == old or new not in shut for new, old in zip(after, at, strict=True)):
                yield after, cost

    def followed(self, plan: MaintenancePlan) -> Cost:
        """What a plan comes to; each of its steps must be legal, and hosts empty when they are out."""
        at, done, cost = self.start, frozenset[str](), 0
        for one in plan.rounds:
            for step in one.steps:
                after = self.after_step(at, step)
                assert (after, len(step.vms)) in list(self.migrations_when(at, done)), f"illegal: {step}"
                at, cost = after, cost + len(step.vms)
            assert len(one.hosts) <= self.at_once
            assert not set(one.hosts) & (set(at) | done)
            done |= frozenset(one.hosts)
        return len(self.asked - done), len(plan.rounds), cost


def fewest_packs(sizes: Sequence[int], room: int) -> int:
    """By trying each pack for each thing; each must fit by itself."""

    def best(left: Sequence[int], packs: tuple[int, ...], least: int) -> int:
        if not left or len(packs) >= least:
            return min(least, len(packs)) if not left else least
        first, *others = left
        for at, filled in enumerate(packs):
            if filled + first <= room:
                least = best(others, (*packs[:at], filled + first, *packs[at + 1 :]), least)
        return best(others, (*packs, first), least)

    return best(sizes, (), len(sizes) + 1)


@given(st.lists(st.integers(1, 10), min_size=1, max_size=7))
@example([5, 5])
@example([5, 5, 5, 5])
@example([6, 4, 5, 5])
def test_no_fewer_packs_are_possible_than_are_called_needed(sizes: list[int]) -> None:
    for room in (max(sizes), 10, 12):
        found = bounds.packs_at_least(sizes, room)
        assert -(-sum(sizes) // room) <= found <= fewest_packs(sizes, room)
    assert bounds.packs_at_least(sizes, max(sizes) - 1) == 0


@pytest.mark.parametrize("asked", range(6))
@pytest.mark.parametrize("hosts", range(7))
def test_a_round_that_is_begun_is_a_round(asked: int, hosts: int) -> None:
    """Of some hosts one must be up at any time: the others go, as many at once as that leaves."""
    names = [f"h{number}" for number in range(6)]
    site: Any = SimpleNamespace(asked=names[:asked])
    rounds, left = 0, min(asked, hosts)
    while left > 0 and hosts > 1:
        rounds, left = rounds + 1, left - (hosts - 1)
    assert bounds._by_places(site, frozenset(names[:hosts])) == rounds


@st.composite
def tiny_sites(draw: st.DrawFn) -> Snapshot:
    """Hosts are up, or empty and in maintenance."""
    state = draw(tiny_clusters(most_placements=256))
    up, *_ = [one.id for one in state.hosts if one.up]
    away = {one.id for one in state.hosts if not one.up}
    hosts = (replace(one, status="maintenance") if one.id in away else one for one in state.hosts)
    vms = (replace(one, host=up) if one.host in away else one for one in state.vms)
    return replace(state, hosts=tuple(hosts), vms=tuple(vms))


@given(state=tiny_sites(), at_once=st.integers(1, 2), data=st.data())
@settings(max_examples=examples(30), deadline=None)
def test_no_plan_is_better(state: Snapshot, at_once: int, data: st.DataObject) -> None:
    known = [one.id for one in state.hosts]
    asked = data.draw(st.one_of(st.just(known), st.lists(st.sampled_from(known), min_size=1, unique=True)))
    plan = plan_maintenance(state, asked, MaintenanceOptions(at_once=at_once, explained=False))
    oracle = Rolling(state, asked, at_once)
    found, best = oracle.followed(plan), oracle.best()
    assert found == best
    assert plan.rounds_at_least <= best[1]
    assert plan.migrations_at_least <= best[2]
    assert found[0] == len(plan.blocked)
