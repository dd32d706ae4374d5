"""Ceilings on hosts: the fewest VMs leave them, proven by what each host must lose at least."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations

import pytest

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import NEVER, ObstacleKind
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.bound import bound, leavers
from ovirt_placement.planning.problem.build_problem import pose
from ovirt_placement.planning.strategies import StrategyName, strategy
from ovirt_placement.planning.verification import apply
from tests.builders import CLUSTER, Part, host, rule, snapshot, vm
from tests.placement.planning.test_tight_ceilings import fewest

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


@pytest.mark.parametrize("name", [StrategyName.OPTIMAL, StrategyName.GREEDY])
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
    limits = [
        rule(
            f"r{counted}",
            "capacity",
            hosts="h1",
            most=sum(size[kind] for size in sizes) - more,
            counted=counted,
        )
        for kind, (counted, more) in enumerate(zip(("vcpus", "memory_mb"), excess, strict=True))
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


@pytest.mark.system
def test_one_vm_leaves_each_of_many_hosts_though_the_others_are_nearly_full() -> None:
    plan = make_plan(tight(60, 24), CLUSTER, deadline=NEVER)
    assert (plan.migrations, plan.remaining) == (24, ())
    assert plan.proven
