"""Clusters under rolling maintenance: by a checker of its own, bounds, and brute force of tiny ones."""

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_options
from heapq import heappop, heappush
from itertools import combinations, count
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.planning.maintenance import exact as bounds
from ovirt_placement.planning.maintenance.draining import Draining
from ovirt_placement.planning.maintenance.exact import migrations_at_least, rounds_at_least
from ovirt_placement.planning.maintenance.planner import plan_maintenance, verified
from ovirt_placement.planning.maintenance.site import MaintenanceOptions, MaintenancePlan, Reserve, Site
from ovirt_simulator.generate import Sizes, generate
from tests.builders import APART, DISABLED, TOGETHER, Part, cluster, group, host, needed_mb, snapshot, vm
from tests.examples import examples
from tests.placement.planning.brute_force import Assignment, BruteForce
from tests.placement.planning.clusters import tiny_clusters

#: Words of a story that say what its cluster has.
#: ha: n+1 reserved; apart, together: hard groups; zones: VMs bound to half of the hosts; pinned: a VM that is
#: stopped by consent; engine: a hosted engine and a storage pool manager; away: a host in maintenance; tight:
#: hardly more room than the round needs; uneven: hosts of two sizes; some: not all hosts are asked for.
STORIES: tuple[tuple[int, int, str], ...] = (
    (3, 1, ""), (3, 1, "ha"), (3, 1, "apart engine"), (3, 1, "pinned together"), (4, 1, "tight"),
    (4, 1, "away ha"), (4, 2, "zones"), (5, 1, "uneven"), (5, 2, "apart together"), (6, 1, "ha apart engine"),
    (6, 2, "some zones"), (6, 3, "away"), (8, 1, "tight ha"), (8, 2, "pinned engine"), (8, 2, "uneven ha"),
    (10, 1, "ha apart together zones"), (10, 2, "tight apart"), (10, 3, "some ha"), (10, 4, "engine away"),
    (12, 2, "zones together ha"), (12, 3, "uneven apart"), (15, 1, "ha engine pinned"),
    (15, 3, "tight together"), (16, 4, "zones apart"), (20, 2, "some uneven ha"),
    (20, 5, "engine apart together"), (25, 5, "ha zones"), (30, 3, "apart together away"),
    (40, 8, "ha engine some"), (50, 5, "apart together zones engine"),
)  # fmt: skip
_GIB = 1024
_SIZE = 64 * _GIB


@dataclass(frozen=True)
class Story:
    """A cluster, and what is asked of it."""

    name: str
    state: Snapshot
    asked: tuple[str, ...]
    options: MaintenanceOptions


def story(number: int) -> Story:
    """One of them, the same each time."""
    hosts, at_once, words = STORIES[number]
    chance = random.Random(number)
    features = words.split()
    names = [f"h{place:02}" for place in range(hosts)]
    made = _Made(chance, features, names, at_once)
    state = snapshot(*made.parts())
    asked = names[: 2 * hosts // 3] if "some" in features else names
    stopped = frozenset({"pinned"}) if "pinned" in features else frozenset[str]()
    title = f"{number + 1:02} {hosts} hosts, {at_once} at once: {words or 'plain'}"
    return Story(title, state, tuple(asked), MaintenanceOptions(at_once=at_once, stopped=stopped))


@dataclass
class _Made:
    chance: random.Random
    features: list[str]
    names: list[str]
    at_once: int
    vms: list[Vm] = field(default_factory=list)

    def parts(self) -> Iterator[Part]:
        yield cluster(ha_reservation="ha" in self.features)
        for place, name in enumerate(self.names):
            yield from self._host(place, name)
        yield from self._groups()

    def _host(self, place: int, name: str) -> Iterator[Part]:
        away = "away" in self.features and place == len(self.names) // 2
        size = _SIZE * (2 if "uneven" in self.features and place % 3 == 0 else 1)
        # So much of each host is free that a round fits into the others, and n+1 into what is left then.
        out = self.at_once + ("ha" in self.features) + ("uneven" in self.features)
        free = min(0.7, (out + 0.4) / len(self.names)) + (0.02 if "tight" in self.features else 0.15)
        room = 0 if away else int(size * (1 - free))
        used = 0
        for number in range(12 * size // _SIZE):
            needs = self.chance.choice([1, 2, 4, 8]) * _GIB
            if used + needs <= room:
                used += needs
                ha = "ha" in self.features and self.chance.random() < 0.5
                self.vms.append(vm(f"{name}v{number:02}", name, needs_mb=needs, ha=ha))
                yield self.vms[-1]
        if "pinned" in self.features and place == 1:
            used += _GIB
            yield vm("pinned", name, migratable=False)
        if "engine" in self.features and place == 2:
            used += 4 * _GIB
            yield vm("engine", name, needs_mb=4 * _GIB, hosted_engine=True)
        spm = "engine" in self.features and place == 0
        status = "maintenance" if away else "up"
        yield host(name, memory_mb=size, free_mb=size - used, spm=spm, status=status)

    def _groups(self) -> Iterator[Part]:
        on: dict[str, list[str]] = {}
        for one in self.vms:
            on.setdefault(one.host or "", []).append(one.id)
        crowds = list(on.values())
        if "apart" in self.features:
            for number in range(3):
                members = [crowd[number] for crowd in crowds if self.chance.random() < 0.5]
                yield group(f"apart{number}", APART, " ".join(members[: len(crowds) // 2]))
        if "together" in self.features:
            for number, crowd in enumerate(crowds):
                yield group(f"together{number}", TOGETHER, " ".join(crowd[1:3]))
        if "zones" in self.features:
            half = len(self.names) // 2
            for zone in (self.names[:half], self.names[half:]):
                members = [vm for name in zone for vm in on.get(name, [])[-2:]]
                vms, hosts = " ".join(members), " ".join(zone)
                yield group(f"zone-{zone[0]}", DISABLED, vms, hosts_rule=TOGETHER, hosts=hosts)


class Checker(BruteForce):
    """Follows a plan by rules of its own: each migration, who is on hosts that go out, and n+1 meanwhile."""

    def __init__(self, reported: Story) -> None:
        self.reported = reported
        super().__init__(reported.state)
        self.up = {host.id for host in reported.state.hosts if host.status == "up"}
        self.reserved = reported.state.clusters[0].ha_reservation

    def check(self, plan: MaintenancePlan) -> None:
        at = self.start
        taken: list[str] = []
        for one in plan.rounds:
            for step in one.steps:
                moving = tuple(self.index[vm] for vm in step.vms)
                assert [at[vm] for vm in moving] == list(step.sources), step
                assert step.target in self.up, f"{step.target} is not up"
                assert self.may_go(at, moving, step.target), f"a rule is violated: {step}"
                at = self.after_step(at, step)
            for moved, target in one.by_engine:
                assert self.vms[self.index[moved]].hosted_engine
                at = tuple(
                    target if number == self.index[moved] else where for number, where in enumerate(at)
                )
            self._out(at, one.hosts, one.stopped)
            taken += one.hosts
            self.up.update(one.hosts)
        assert sorted(taken) == sorted(set(taken))
        self._in_order(plan)

    def may_go(self, at: tuple[str, ...], moving: tuple[int, ...], host: str) -> bool:
        """A host that was away is one that is up once it is done."""
        self.host[host] = replace(self.host[host], status="up")
        return super().may_go(at, moving, host)

    def _out(self, at: tuple[str, ...], hosts: tuple[str, ...], stopped: tuple[str, ...]) -> None:
        assert len(hosts) <= self.reported.options.at_once
        assert set(stopped) <= self.reported.options.stopped
        left = {one.id for number, one in enumerate(self.vms) if at[number] in hosts}
        assert left <= set(stopped), f"not empty: {hosts}"
        for failing in sorted(self.up - set(hosts)) if self.reserved else ():
            assert self._restarts(at, self.up - {failing, *hosts}, failing), f"{failing} must not fail"

    def _restarts(self, at: tuple[str, ...], homes: set[str], failing: str) -> bool:
        """Whether highly available VMs find room on hosts that rules allow: all ways, the bound VMs first."""
        lost = [number for number, one in enumerate(self.vms) if at[number] == failing and one.ha]
        bound = {vm for rule in self.rules if rule.hard and rule.kind != "apart" for vm in rule.vms}
        lost.sort(key=lambda one: (one not in bound, -needed_mb(self.vms[one])))
        return self._all_start(list(at), lost, homes, failing)

    def _all_start(self, now: list[str], left: list[int], homes: set[str], failing: str) -> bool:
        if not left:
            return True
        first, *others = left
        for home in sorted(homes, key=lambda host: -self._free(now, host)):
            if self._starts(now, first, home, failing):
                now[first] = home
                if self._all_start(now, others, homes, failing):
                    return True
                now[first] = failing
        return False

    def _free(self, at: list[str], host: str) -> int:
        return self.total[host] - sum(needed_mb(vm) for place, vm in enumerate(self.vms) if at[place] == host)

    def _starts(self, at: list[str], vm: int, host: str, failing: str) -> bool:
        if self._free(at, host) < needed_mb(self.vms[vm]):
            return False
        for rule in self.hard_of[vm]:
            peers = [at[other] for other in rule.vms if other != vm and at[other] != failing]
            if rule.kind == "apart" and host in peers:
                return False
            if rule.kind == "together" and peers and host not in peers:
                return False
            if rule.kind in {"on", "off"} and (host in rule.hosts) != (rule.kind == "on"):
                return False
        return True

    def _in_order(self, plan: MaintenancePlan) -> None:
        """The storage pool manager last, the hosted engine's host before."""
        spm = {host.id for host in self.reported.state.hosts if host.spm}
        engine = {vm.host or "" for vm in self.vms if vm.hosted_engine}
        rounds = {name: number for number, one in enumerate(plan.rounds) for name in one.hosts}
        for late, early in ((spm, set(rounds) - spm), (engine, set(rounds) - spm - engine)):
            for name in late & rounds.keys():
                assert all(rounds[other] <= rounds[name] for other in early)


#: What a plan may have beyond its bounds.
MORE = 1.1


@pytest.mark.nightly
@pytest.mark.parametrize("at_once", [1, 5])
def test_a_hundred_hosts_are_near_the_bounds(at_once: int) -> None:
    state = generate(Sizes(hosts=100, vms=2000, groups=200, broken=0.0), seed=1)
    (cluster,) = state.clusters
    asked = tuple(host.id for host in state.hosts)
    site = Site(state, cluster.id, asked, MaintenanceOptions(at_once=at_once), Reserve(state, cluster.id, ()))
    rounds = rounds_at_least(site)
    outcome = Draining(site, asked, None, rounds).run()
    assert outcome.blocked == ()
    assert len(outcome.waves) <= MORE * rounds
    assert outcome.merit[2] <= MORE * migrations_at_least(site, rounds)
    found = verified(site, outcome.waves)
    assert not found.refused
    assert len(found.rounds) == len(outcome.waves)


#: How many of them need as few rounds as the bound says, at least.
AT_BOUND = 25
#: What others may have of migrations beyond the bound.
MORE_MIGRATIONS = 1.05


@pytest.mark.nightly
def test_no_rule_is_violated_in_any_state_and_plans_are_near_their_bounds() -> None:
    at_bound = 0
    for reported in map(story, range(len(STORIES))):
        options = with_options(reported.options, explained=False)
        plan = plan_maintenance(reported.state, reported.asked, options)
        Checker(reported).check(plan)
        assert len(plan.hosts) == len(reported.asked), reported.name
        assert plan.migrations <= MORE_MIGRATIONS * plan.migrations_at_least, reported.name
        at_bound += len(plan.rounds) == plan.rounds_at_least
    assert at_bound >= AT_BOUND


# -- Of tiny clusters no plan is better, and no bound above the best, by brute force.
Point = tuple[Assignment, frozenset[str]]
#: Hosts that get no round, rounds, migrations.
Cost = tuple[int, int, int]


class Rolling(BruteForce):
    """All ways; hosts that are away at first may be targets once they are done."""

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
    options = MaintenanceOptions(at_once=at_once, explained=False)
    plan = plan_maintenance(state, asked, options)
    Checker(Story("tiny", state, tuple(asked), options)).check(plan)
    best = Rolling(state, asked, at_once).best()
    assert (len(asked) - len(plan.hosts), len(plan.rounds), plan.migrations) == best
    assert plan.rounds_at_least <= best[1]
    assert plan.migrations_at_least <= best[2]
    assert len(plan.blocked) == best[0]
