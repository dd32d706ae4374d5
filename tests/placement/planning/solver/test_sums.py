"""Ceilings on hosts: the fewest VMs leave them, proven by what each host must lose at least."""

import math
import random
from collections.abc import Iterator, Sequence
from itertools import combinations, count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import NEVER, ObstacleKind
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.bound import bound, leavers
from ovirt_placement.planning.problem.build_problem import pose
from ovirt_placement.planning.problem.ends import CandidateHosts
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.solver import construction
from ovirt_placement.planning.solver.construction import Construction
from ovirt_placement.planning.solver.strategy import Improvement
from ovirt_placement.planning.steps import apply
from ovirt_placement.planning.strategies import StrategyName, strategy
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    Part,
    group,
    host,
    rule,
    snapshot,
    vm,
)
from tests.examples import examples
from tests.placement.planning.plans import ALL, EACH
from tests.placement.planning.test_mixed_rules import clusters
from tests.speed import of_processor

SIZES = (1, 2, 3, 5)


def crowded(hosts: int, over: int) -> Snapshot:
    """Hosts of nine vCPUs, of which some run eleven, and all others five."""

    def parts() -> Iterator[Part]:
        for number in range(hosts):
            name = f"h{number:02}"
            yield host(name, cores=32)
            yield rule(f"ceiling-{name}", "capacity", hosts=name, most=9, counted="vcpus")
            for vcpus in SIZES if number < over else SIZES[1:3]:
                yield vm(f"{name}-{vcpus}", name, vcpus=vcpus)

    return snapshot(*parts())


def too_much(state: Snapshot) -> int:
    """By how many vCPUs the hosts are above their ceilings: none counts for another."""
    used: dict[str, int] = {}
    for one in state.vms:
        used[one.host or ""] = used.get(one.host or "", 0) + one.vcpus
    return sum(max(0, of_host - 9) for of_host in used.values())


@EACH
@pytest.mark.parametrize(("hosts", "over"), [(4, 2), (12, 5)])
def test_one_vm_leaves_each_host_that_is_above_its_ceiling(name: StrategyName, hosts: int, over: int) -> None:
    state = crowded(hosts, over)
    plan = make_plan(state, CLUSTER, strategy=strategy(name), deadline=NEVER)
    assert plan.migrations == over
    assert plan.proven
    excess = [too_much(state)]
    for step in plan.steps:
        state = apply(state, step)
        excess.append(too_much(state))
    assert excess == sorted(excess, reverse=True)
    assert excess[-1] == 0


def test_what_hosts_must_lose_adds_up_though_the_rules_are_about_the_same_vms() -> None:
    assert bound(pose(crowded(6, 3), CLUSTER))[-1] == 3


def test_moves_to_and_from_different_ceilings_need_not_wait_for_each_other() -> None:
    plan = make_plan(crowded(8, 3), CLUSTER, deadline=NEVER)
    assert [step.after for step in plan.steps] == [(), (), ()]


@pytest.mark.parametrize("seed", range(40))
def test_just_the_vms_may_leave_that_are_among_as_few_as_must(seed: int) -> None:
    dice = random.Random(seed)
    vcpus = [dice.randint(1, 8) for _ in range(7)]
    ceiling = dice.randint(1, sum(vcpus) - 1)
    vms = [vm(f"v{number}", "h1", vcpus=size) for number, size in enumerate(vcpus)]
    limit = rule("ceiling", "capacity", hosts="h1", most=ceiling, counted="vcpus")
    problem = pose(snapshot(host("h1", cores=32), host("h2", cores=32), *vms, limit), CLUSTER)
    [(may_leave, number)] = leavers(problem, problem.goals)
    too_much = sum(vcpus) - ceiling
    enough = [few for few in combinations(range(7), number) if sum(vcpus[one] for one in few) >= too_much]
    assert enough
    assert set(may_leave) == {f"v{one}" for few in enough for one in few}


@pytest.mark.parametrize("seed", range(40))
def test_of_two_ceilings_of_a_host_as_many_must_leave_as_bring_it_below_both(seed: int) -> None:
    dice = random.Random(seed)
    sizes = [(vcpus, 1024 * (10 - vcpus + dice.randint(0, 2))) for vcpus in dice.choices(range(1, 10), k=7)]
    vms = [vm(f"v{at}", "h1", vcpus=vcpus, memory_mb=mb) for at, (vcpus, mb) in enumerate(sizes)]
    excess = [dice.randint(3, 9), 1024 * dice.randint(3, 9)]
    most = [sum(size[kind] for size in sizes) - more for kind, more in enumerate(excess)]
    limits = [
        rule(f"r{counted}", "capacity", hosts="h1", most=ceiling, counted=counted)
        for counted, ceiling in zip(("vcpus", "memory_mb"), most, strict=True)
    ]
    hosts = [host("h1", cores=99, memory_mb=10**6), host("h2", cores=99, memory_mb=10**6, free_mb=10**6)]
    problem = pose(snapshot(*hosts, *vms, *limits), CLUSTER)
    least, truly = bound(problem)[-1], fewest(sizes, excess)
    assert least <= truly
    assert least == truly or truly > 2
    [(may_leave, number)] = leavers(problem, problem.goals)
    assert number == least
    for few in combinations(range(7), number):
        if all(sum(sizes[one][kind] for one in few) >= excess[kind] for kind in (0, 1)):
            assert {f"v{one}" for one in few} <= set(may_leave)


def tight(hosts: int, over: int) -> Snapshot:
    """Hosts with a VM too many each, and others with room for few."""
    dice = random.Random(1)
    parts: list[Part] = []
    for number in range(hosts):
        name = f"h{number:02}"
        sizes = [dice.randint(2, 12) for _ in range(20)]
        most = sum(sizes) - (dice.randint(1, 6) if number < over else -dice.randint(3, 9))
        parts.append(host(name, cores=400))
        parts.append(rule(f"ceiling-{name}", "capacity", hosts=name, most=most, counted="vcpus"))
        parts.extend(vm(f"{name}-{one:02}", name, vcpus=size) for one, size in enumerate(sizes))
    return snapshot(*parts)


def test_what_a_plan_leaves_above_a_limit_is_counted() -> None:
    names = ("h1", "h2", "h3")
    limits = [rule(f"limit-{name}", "capacity", hosts=name, most=3, counted="vcpus") for name in names]
    vms = [vm("a", "h1", vcpus=2), vm("b", "h1", vcpus=2), vm("c", "h2", vcpus=8), vm("d", "h3", vcpus=1)]
    hosts = [host(name, cores=32) for name in names]
    plan = make_plan(snapshot(*hosts, *vms, *limits), CLUSTER, deadline=NEVER)
    assert plan.migrations == 1
    [left] = plan.remaining
    [above] = [one for one in left.obstacles if one.kind is ObstacleKind.ABOVE]
    assert (above.needed, above.available) == (5, 3)
    assert (above.repaired, above.count) == (1, 2)


@st.composite
def with_ceilings(draw: st.DrawFn) -> Snapshot:
    """Groups and rules of every kind, and a ceiling on each host."""
    state = draw(clusters(128))
    ceilings = [
        rule(f"ceiling-{one.id}", "capacity", hosts=one.id, most=draw(st.integers(1, 9)), counted="vcpus")
        for one in state.hosts
    ]
    return replace(state, placement_rules=(*state.placement_rules, *ceilings))


def built(problem: Problem) -> Construction:
    construction = Construction(problem, CandidateHosts(problem))
    construction.run(NEVER)
    return construction


def ended(state: Snapshot) -> Improvement:
    improving = Improvement(built(pose(state, CLUSTER, options=ALL)))
    improving.run(NEVER)
    return improving


@settings(deadline=None, max_examples=examples(15), suppress_health_check=list(HealthCheck))
@given(with_ceilings())
def test_no_end_needs_fewer_migrations_than_vms_must_leave(state: Snapshot) -> None:
    """Of a large cluster that proves the fewest; here every cluster is taken to be large."""
    best = ended(state)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(construction, "_MOST_PLACES", 0)
        large = ended(state)
    assert large.bound <= best.value <= large.value


#: Of two that are to meet one leaves a host that is above its ceiling; nowhere is room for both.
MEETING = snapshot(
    *(host(name, cores=32) for name in ("h1", "h2", "h3")),
    *(vm(name, f"h{number}", vcpus=4) for number, name in enumerate("abc", 1)),
    *(vm(f"other-{name}", name, vcpus=5) for name in ("h1", "h2", "h3")),
    rule("on-h1", "capacity", hosts="h1", most=8, counted="vcpus"),
    *(rule(f"on-{name}", "capacity", hosts=name, most=10, counted="vcpus") for name in ("h2", "h3")),
    group("meeting", TOGETHER, "a b"),
)


def test_what_meets_on_a_host_makes_others_leave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule by rule that is not seen: the rule of one host is satisfied as yet, the other's shares a VM."""
    monkeypatch.setattr(construction, "_MOST_PLACES", 0)
    problem = pose(MEETING, CLUSTER)
    assert (bound(problem)[-1], built(problem).bound[-1]) == (1, 2)


#: Where a is to meet b there is room once a VM leaves that no rule is about.
OUTSIDER = snapshot(
    host("h1", cores=32), host("h2", cores=32, free_mb=0), host("h3", cores=32),
    vm("a", "h1", vcpus=4), vm("b", "h2", vcpus=4), vm("c", "h1", vcpus=4), vm("outsider", "h2"),
    rule("on-h1", "capacity", vms="a b c", hosts="h1", most=4, counted="vcpus"),
    group("meeting", TOGETHER, "a b"),
)  # fmt: skip


def test_room_that_others_may_leave_is_no_part_of_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_plan(OUTSIDER, CLUSTER, deadline=NEVER).migrations == 2
    monkeypatch.setattr(construction, "_MOST_PLACES", 0)
    assert built(pose(OUTSIDER, CLUSTER)).bound <= (0, 0, 0, 2)


def test_who_finds_no_host_is_not_among_those_that_may_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rivals that stay have all other hosts of a."""
    monkeypatch.setattr(construction, "_MOST_PLACES", 0)
    state = snapshot(
        *(host(name, cores=32) for name in ("h1", "h2", "h3")), *(vm(name, "h1", vcpus=4) for name in "ad"),
        *(vm(name, home, migratable=False) for name, home in (("b", "h2"), ("c", "h3"))),
        rule("on-h1", "capacity", hosts="h1", most=4, counted="vcpus"), group("apart", APART, "a b c"),
    )  # fmt: skip
    assert ended(state).where.keys() == {"d"}


@pytest.mark.system
def test_one_vm_leaves_each_of_many_hosts_though_the_others_are_nearly_full() -> None:
    plan = make_plan(tight(60, 24), CLUSTER, deadline=NEVER)
    assert (plan.migrations, plan.remaining) == (24, ())
    assert plan.proven


#: What is counted of a VM: MiB, and CPUs.
Size = tuple[int, int]
COUNTED = ("memory_mb", "vcpus")


class Crowd:
    """VMs of all sizes on hosts with two ceilings each; those of a group must be apart."""

    def __init__(self, seed: int, hosts: int, full: float, higher: float) -> None:
        """`full` is the share of all ceilings that is taken; `higher` is how far VMs may go above them."""
        dice = random.Random(seed)
        names = [f"v{number}" for number in range(1000)]
        self.sizes = {name: _size(dice) for name in names}
        totals = [sum(size[kind] for size in self.sizes.values()) for kind in (0, 1)]
        self.ceilings = [math.ceil(total / hosts / full) for total in totals]
        left = dice.sample(names, len(names))
        counts = [min(8, round(2 * dice.paretovariate(1))) for _ in range(100)]
        self.apart = [[left.pop() for _ in range(count)] for count in counts]
        self.rivals = {one: members for members in self.apart for one in members}
        self.loads = {f"h{at:02}": [0, 0] for at in range(hosts)}
        self.where: dict[str, str] = {}
        for name in sorted(names, key=lambda name: -self.share(self.sizes[name])):
            self.go(name, min(self.open_to(name), key=lambda at: self.share(self.load_with(name, at))))
        for _ in range(40 * len(names) // hosts):
            name, at = dice.choice(names), dice.choice(sorted(self.loads))
            if at in self.open_to(name) and self.share(self.load_with(name, at)) <= higher:
                self.go(name, at)

    def share(self, load: Sequence[int]) -> float:
        return max(amount / ceiling for amount, ceiling in zip(load, self.ceilings, strict=True))

    def load_with(self, name: str, at: str) -> list[int]:
        return [load + more for load, more in zip(self.loads[at], self.sizes[name], strict=True)]

    def open_to(self, name: str) -> list[str]:
        taken = {self.where.get(one) for one in self.rivals.get(name, ())}
        return [at for at in self.loads if at not in taken]

    def above(self) -> dict[str, list[int]]:
        """Hosts above a ceiling, with what they have too much of each."""
        return {
            at: [amount - ceiling for amount, ceiling in zip(load, self.ceilings, strict=True)]
            for at, load in self.loads.items()
            if self.share(load) > 1
        }

    def go(self, name: str, target: str) -> None:
        if source := self.where.get(name):
            before = zip(self.loads[source], self.sizes[name], strict=True)
            self.loads[source] = [load - less for load, less in before]
        self.loads[target], self.where[name] = self.load_with(name, target), target

    def state(self) -> Snapshot:
        return snapshot(
            *(host(name, memory_mb=10**8, free_mb=10**7, cores=self.ceilings[1]) for name in self.loads),
            *(
                vm(name, at, memory_mb=self.sizes[name][0], vcpus=self.sizes[name][1])
                for name, at in self.where.items()
            ),
            *(
                rule(f"{kind}-{name}", "capacity", hosts=name, most=most, counted=kind)
                for name in self.loads
                for kind, most in zip(COUNTED, self.ceilings, strict=True)
            ),
            *(group(f"g{number}", APART, " ".join(members)) for number, members in enumerate(self.apart)),
        )


def _size(dice: random.Random) -> Size:
    """A few large ones, and many small ones; with more memory go more CPUs, as a rule."""
    one, other = dice.random(), dice.random()
    return round(256 * 400**one), max(1, round(500 ** ((one + other) / 2)))


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


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("seed", "hosts", "full", "higher"), [(1, 50, 0.93, 1.1), (2, 50, 0.95, 1.08), (3, 100, 0.93, 1.08)]
)
def test_a_thousand_vms_below_their_ceilings_by_the_fewest_migrations(
    seed: int, hosts: int, full: float, higher: float
) -> None:
    """No step takes a VM to a host that it brings, or leaves, above a ceiling."""
    crowd = Crowd(seed, hosts, full, higher)
    there = {at: [crowd.sizes[one] for one, its in crowd.where.items() if its == at] for at in crowd.loads}
    least = sum(fewest(there[at], excess) for at, excess in crowd.above().items())
    assert least >= 13
    plan = make_plan(crowd.state(), CLUSTER, deadline=of_processor(20))
    for step in plan.steps:
        for name in step.vms:
            assert step.target in crowd.open_to(name)
            crowd.go(name, step.target)
            assert step.target not in crowd.above()
    assert not crowd.above()
    assert plan.at_least <= plan.migrations <= 1.03 * least


def test_the_fewest_that_make_up_what_is_too_much() -> None:
    """One has enough of either; only two together have enough of both."""
    assert fewest([(9, 1), (1, 9), (4, 4)], (8, 8)) == 2
    assert fewest([(9, 1), (1, 9), (8, 8)], (8, 8)) == 1
    assert fewest([(9, 1)], (0, -3)) == 0


def test_two_sums_on_the_same_hosts_may_be_of_different_vms() -> None:
    """Who leaves for one must not bring down the other, which has VMs of its own."""
    state = snapshot(
        host("h1", cores=32), host("h2", cores=32),
        *(vm(name, "h1", vcpus=2) for name in "abcd"),
        rule("one", "capacity", vms="a b", hosts="h1", most=2, counted="vcpus"),
        rule("other", "capacity", vms="c d", hosts="h1", most=2, counted="vcpus"),
    )  # fmt: skip
    problem = pose(state, CLUSTER)
    assert [(sorted(vms), count) for vms, count in leavers(problem, problem.goals)] == [
        (["a", "b"], 1),
        (["c", "d"], 1),
    ]


def test_a_sum_that_no_vm_can_leave_counts_as_it_is() -> None:
    """One VM must leave h0; on h5, where one cannot move, two vCPUs more than the ceiling remain."""
    state = snapshot(
        *(host(name, free_mb=free_mb) for name, free_mb in {"h0": 0, "h1": 1024}.items()),
        *(host(name, free_mb=4096) for name in ("h2", "h6", "h7")),
        host("h5", free_mb=0, status="maintenance"),
        rule("first", "capacity", hosts="h5", most=4, counted="vcpus"),
        rule("second", "capacity", hosts="h7", most=9, counted="vcpus", enforcing=False),
        vm("stays", "h5", vcpus=2, migratable=False), vm("leaves", "h5", vcpus=4),
        vm("moves", "h0", vcpus=2), vm("peer", "h2", needs_mb=4096),
        *(vm(name, "h0", vcpus=4, needs_mb=4096) for name in ("a", "b")),
        vm("c", "h6", vcpus=2, needs_mb=4096), vm("d", "h1"),
        group("off", SOFT_APART, vms="moves peer", hosts_rule=APART, hosts="h0", priority=5.0),
    )  # fmt: skip
    problem = pose(state, CLUSTER, options=ALL)
    built = Construction(problem, CandidateHosts(problem))
    built.run(NEVER)
    assert built.bound == Improvement(built).value == (1, 0, 0, 0, 2, 1)


def test_what_no_vm_of_a_large_part_can_repair_does_not_count_for_what_they_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing brings `far` together, one of which is on a host that does not work."""
    monkeypatch.setattr(construction, "_MOST_PLACES", 0)
    names = ("h2", "h3", "h6", "h8", "h11")
    state = snapshot(
        *(host(name, free_mb=30000 if name == "h11" else 4096) for name in names),
        host("h9", status="non_operational"),
        *(rule(f"ceiling-{name}", "capacity", hosts=name, most=9, counted="vcpus") for name in names),
        vm("a", "h3", vcpus=2, needs_mb=2048), vm("b", "h3", vcpus=4, needs_mb=2048, migratable=False),
        vm("c", "h3", vcpus=4, needs_mb=4096), vm("d", "h2"),
        vm("e", "h9", vcpus=2, needs_mb=2048), vm("f", "h8", vcpus=4, needs_mb=4096),
        vm("g", "h6", vcpus=4, needs_mb=2048),
        group("near", SOFT_TOGETHER, vms="a b d"), group("far", SOFT_TOGETHER, vms="e f g"),
    )  # fmt: skip
    problem = pose(state, CLUSTER, options=ALL)
    built = Construction(problem, CandidateHosts(problem))
    built.run(NEVER)
    assert built.bound == Improvement(built).value == (0, 0, 1, 0, 2)
