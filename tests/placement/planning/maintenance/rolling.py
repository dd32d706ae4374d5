"""An oracle for rolling maintenance of tiny clusters: the cheapest of all that migrations and rounds reach.

Like the brute force that it is built on, it shares no code with the planner or the rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush
from itertools import combinations, count

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.maintenance.site import MaintenancePlan
from tests.placement.planning.brute_force import Assignment, BruteForce

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
                after = tuple(
                    step.target if vm.id in step.vms else at[number] for number, vm in enumerate(self.vms)
                )
                assert (after, len(step.vms)) in list(self.migrations_when(at, done)), f"illegal: {step}"
                at, cost = after, cost + len(step.vms)
            assert len(one.hosts) <= self.at_once
            assert not set(one.hosts) & (set(at) | done)
            done |= frozenset(one.hosts)
        return len(self.asked - done), len(plan.rounds), cost
