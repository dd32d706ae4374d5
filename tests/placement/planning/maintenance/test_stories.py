"""Clusters under rolling maintenance, from 3 to 100 hosts: by a checker of its own, and bounds."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from msgspec.structs import replace as replace_fields

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.planning.maintenance.draining import Draining
from ovirt_placement.planning.maintenance.exact import migrations_at_least, rounds_at_least
from ovirt_placement.planning.maintenance.planner import plan_maintenance, verified
from ovirt_placement.planning.maintenance.site import MaintenanceOptions, MaintenancePlan, Reserve, Site
from ovirt_simulator.generate import Sizes, generate
from tests.builders import APART, DISABLED, TOGETHER, Part, cluster, group, host, needed_mb, snapshot, vm
from tests.placement.planning.brute_force import BruteForce

#: Words of a story that say what its cluster has.
#: ha: n+1 reserved; apart, together: hard groups; zones: VMs bound to half of the hosts; pinned: a VM that is
#: stopped by consent; engine: a hosted engine and a storage pool manager; away: a host in maintenance; tight:
#: hardly more room than the round needs; uneven: hosts of two sizes; some: not all hosts are asked for.
STORIES: tuple[tuple[int, int, str], ...] = (
    (3, 1, ""),
    (3, 1, "ha"),
    (3, 1, "apart engine"),
    (3, 1, "pinned together"),
    (4, 1, "tight"),
    (4, 1, "away ha"),
    (4, 2, "zones"),
    (5, 1, "uneven"),
    (5, 2, "apart together"),
    (6, 1, "ha apart engine"),
    (6, 2, "some zones"),
    (6, 3, "away"),
    (8, 1, "tight ha"),
    (8, 2, "pinned engine"),
    (8, 2, "uneven ha"),
    (10, 1, "ha apart together zones"),
    (10, 2, "tight apart"),
    (10, 3, "some ha"),
    (10, 4, "engine away"),
    (12, 2, "zones together ha"),
    (12, 3, "uneven apart"),
    (15, 1, "ha engine pinned"),
    (15, 3, "tight together"),
    (16, 4, "zones apart"),
    (20, 2, "some uneven ha"),
    (20, 5, "engine apart together"),
    (25, 5, "ha zones"),
    (30, 3, "apart together away"),
    (40, 8, "ha engine some"),
    (50, 5, "apart together zones engine"),
)
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
        self.host[host] = replace_fields(self.host[host], status="up")
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


def planned(reported: Story) -> MaintenancePlan:
    return plan_maintenance(reported.state, reported.asked, replace(reported.options, explained=False))


@pytest.fixture(scope="module")
def plans() -> list[tuple[Story, MaintenancePlan]]:
    stories = [story(number) for number in range(len(STORIES))]
    return [(reported, planned(reported)) for reported in stories]


@pytest.mark.nightly
def test_no_rule_is_violated_in_any_state(plans: list[tuple[Story, MaintenancePlan]]) -> None:
    for reported, plan in plans:
        Checker(reported).check(plan)


@pytest.mark.nightly
def test_rounds_and_migrations_are_near_their_bounds(plans: list[tuple[Story, MaintenancePlan]]) -> None:
    assert all(len(plan.hosts) == len(reported.asked) for reported, plan in plans)
    assert sum(len(plan.rounds) == plan.rounds_at_least for _, plan in plans) >= AT_BOUND
    for reported, plan in plans:
        assert plan.migrations <= MORE_MIGRATIONS * plan.migrations_at_least, reported.name
