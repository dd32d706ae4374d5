"""Ceilings on memory and CPUs of nearly full hosts: plans keep within 3 % of what any plan needs at least.

What each host must lose by itself, counted set by set, is that least: all VMs are on one host, so it adds up.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations, count

import pytest

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.planning.planner import make_plan
from tests.builders import APART, CLUSTER, group, host, rule, snapshot, vm
from tests.placement.planning.clocks import of_processor

#: What is counted of a VM: MiB, and CPUs.
Size = tuple[int, int]
COUNTED = ("memory_mb", "vcpus")


class Cluster:
    """Hosts and VMs of all sizes, dealt out evenly, and then moved about below a ceiling that is higher."""

    def __init__(self, seed: int, hosts: int, vms: int, full: float, higher: float) -> None:
        """`full` is the share of all ceilings that is taken; `higher` is how far VMs may go above them."""
        self.dice = random.Random(seed)
        self.hosts = hosts
        self.sizes = [self._size() for _ in range(vms)]
        totals = [sum(size[kind] for size in self.sizes) for kind in (0, 1)]
        self.ceilings = (math.ceil(totals[0] / hosts / full), math.ceil(totals[1] / hosts / full))
        left = self.dice.sample(range(vms), vms)
        self.apart = [[left.pop() for _ in range(self._members())] for _ in range(vms // 10)]
        self.group_of = {one: number for number, members in enumerate(self.apart) for one in members}
        self.loads = [[0, 0] for _ in range(hosts)]
        self.taken: set[tuple[int, int]] = set()
        self.where: dict[int, int] = {}
        for one in sorted(range(vms), key=lambda one: -self._share(self.sizes[one])):
            free = [at for at in range(hosts) if (self.group_of.get(one), at) not in self.taken]
            self._put(one, min(free, key=lambda at: self._share(self._with(one, at))))
        for _ in range(vms * 40 // hosts):
            one, at = self.dice.randrange(vms), self.dice.randrange(hosts)
            is_free = (self.group_of.get(one), at) not in self.taken
            if is_free and self._share(self._with(one, at)) <= higher:
                self._put(one, at)

    def _size(self) -> Size:
        """A few large ones, and many small ones; with more memory go more CPUs, as a rule."""
        one, other = self.dice.random(), self.dice.random()
        return round(256 * 400**one), max(1, round(500 ** ((one + other) / 2)))

    def _members(self) -> int:
        return min(8, round(2 * self.dice.paretovariate(1)))

    def _share(self, size: Sequence[int]) -> float:
        return max(amount / ceiling for amount, ceiling in zip(size, self.ceilings, strict=True))

    def _with(self, one: int, at: int) -> Size:
        return self.loads[at][0] + self.sizes[one][0], self.loads[at][1] + self.sizes[one][1]

    def _put(self, one: int, at: int) -> None:
        for place, sign in ((self.where.get(one), -1), (at, 1)):
            if place is not None:
                for kind in (0, 1):
                    self.loads[place][kind] += sign * self.sizes[one][kind]
        self.taken.discard((self.group_of.get(one, -1), self.where.get(one, -1)))
        if one in self.group_of:
            self.taken.add((self.group_of[one], at))
        self.where[one] = at

    def state(self) -> Snapshot:
        names = [f"h{at:02}" for at in range(self.hosts)]
        return snapshot(
            *(host(name, memory_mb=10**8, free_mb=10**7, cores=self.ceilings[1]) for name in names),
            *(
                vm(f"v{one}", names[at], memory_mb=self.sizes[one][0], vcpus=self.sizes[one][1])
                for one, at in self.where.items()
            ),
            *(
                rule(f"{kind}-{name}", "capacity", hosts=name, most=most, counted=kind)
                for name in names
                for kind, most in zip(COUNTED, self.ceilings, strict=True)
            ),
            *(
                group(f"g{number}", APART, " ".join(f"v{one}" for one in members))
                for number, members in enumerate(self.apart)
            ),
        )


def fewest(sizes: Sequence[Size], excess: Sequence[int]) -> int:
    """How few of these make up what is too much, tried set by set from the fewest."""
    if max(excess) <= 0:
        return 0
    for number in count(1):
        largest = [sorted((size[kind] for size in sizes), reverse=True)[:number] for kind in (0, 1)]
        if all(sum(most) >= more for most, more in zip(largest, excess, strict=True)):
            for few in combinations(sizes, number):
                if all(sum(size[kind] for size in few) >= excess[kind] for kind in (0, 1)):
                    return number
    raise AssertionError


class Replay:
    """The VMs step by step: a step takes no VM to a host that it brings, or leaves, above a ceiling."""

    def __init__(self, state: Snapshot, ceilings: Size) -> None:
        self.ceilings = ceilings
        self.vms: dict[str, Vm] = {one.id: one for one in state.vms}
        self.where = {one.id: one.host or "" for one in state.vms}
        self.apart = [frozenset(one.vms) for one in state.affinity_groups]

    def loads(self) -> dict[str, Size]:
        found: defaultdict[str, Size] = defaultdict(lambda: (0, 0))
        for name, at in self.where.items():
            memory_mb, vcpus = found[at]
            found[at] = memory_mb + self.vms[name].memory_mb, vcpus + self.vms[name].vcpus
        return found

    def above(self) -> dict[str, Size]:
        """Hosts above a ceiling, with what they have too much of each."""
        loads = {
            at: (load[0] - self.ceilings[0], load[1] - self.ceilings[1]) for at, load in self.loads().items()
        }
        return {at: excess for at, excess in loads.items() if max(excess) > 0}

    def go(self, name: str, target: str) -> None:
        self.where[name] = target
        assert target not in self.above()
        for members in self.apart:
            if name in members:
                assert [self.where[one] for one in members].count(target) == 1


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("seed", "hosts", "full", "higher"), [(1, 50, 0.93, 1.1), (2, 50, 0.95, 1.08), (3, 100, 0.93, 1.08)]
)
def test_a_thousand_vms_below_their_ceilings_by_the_fewest_migrations(
    seed: int, hosts: int, full: float, higher: float
) -> None:
    cluster = Cluster(seed, hosts, 1000, full, higher)
    state = cluster.state()
    replay = Replay(state, cluster.ceilings)
    least = 0
    for at, excess in replay.above().items():
        there = [(one.memory_mb, one.vcpus) for one in state.vms if one.host == at]
        least += fewest(there, excess)
    assert least >= 13
    plan = make_plan(state, CLUSTER, deadline=of_processor(20))
    for step in plan.steps:
        for name in step.vms:
            replay.go(name, step.target)
    assert not replay.above()
    assert plan.at_least <= plan.migrations <= 1.03 * least


def test_the_fewest_that_make_up_what_is_too_much() -> None:
    """One has enough of either; only two together have enough of both."""
    assert fewest([(9, 1), (1, 9), (4, 4)], (8, 8)) == 2
    assert fewest([(9, 1), (1, 9), (8, 8)], (8, 8)) == 1
    assert fewest([(9, 1)], (0, -3)) == 0
