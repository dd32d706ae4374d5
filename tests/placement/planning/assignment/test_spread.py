"""What moves is spread: no pile-up on the emptiest host, and nothing that matters more gets worse for it."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.assignment.assignment import Assignment
from ovirt_placement.planning.assignment.greedy import Greedy
from ovirt_placement.planning.assignment.spread import spread
from ovirt_placement.planning.plan import NEVER
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, pose
from ovirt_placement.planning.problem.problem import Problem
from ovirt_simulator.generate import Sizes, generate
from tests.builders import APART, CLUSTER, TOGETHER, group, host, needed_mb, snapshot, vm
from tests.examples import examples
from tests.placement.planning.assignment.clusters import drawn
from tests.placement.planning.assignment.ends import Ends


def problem_of(cluster: Snapshot, headroom: float = 0.0) -> Problem:
    options = PlanOptions(
        repair=frozenset({Repair.HARD, Repair.SOFT}), memory_headroom=headroom, cpu_headroom=headroom
    )
    return pose(cluster, cluster.clusters[0].id, options=options)


def rises(problem: Problem, where: Mapping[str, str], size: Mapping[str, float]) -> dict[str, float]:
    """How much more each host has than at the start."""
    found = dict.fromkeys(problem.hosts, 0.0)
    for name, target in where.items():
        found[target] += size[name]
        found[problem.where[name]] -= size[name]
    return found


def fair_share(problem: Problem, moved: Collection[str], size: Mapping[str, float]) -> float:
    """What each possible target would get, were it spread evenly; a VM cannot be divided."""
    targets = {target for name in moved for target in problem.targets[name]}
    return max(sum(size[name] for name in moved) / len(targets), *(size[name] for name in moved))


def pairs_that_must_part(seed: int) -> Snapshot:
    """15 hosts, 400 VMs, and 30 pairs that share a host; one host is far emptier than the others."""
    dice = random.Random(seed)
    names = [f"h{number:02}" for number in range(15)]
    vms, groups = [], []
    for number in range(30):
        home = dice.choice(names[1:])
        for twin in ("a", "b"):
            vms.append(vm(f"{twin}{number:02}", home, needs_mb=4096, vcpus=2, usage_cpu_percent=40))
        groups.append(group(f"g{number:02}", APART, f"a{number:02} b{number:02}"))
    vms += [
        vm(f"v{number:03}", names[1 + number % 14], needs_mb=4096, vcpus=2, usage_cpu_percent=20)
        for number in range(340)
    ]
    used_mb = {name: sum(needed_mb(one) for one in vms if one.host == name) for name in names}
    used = {
        name: sum(one.vcpus * (one.usage_cpu_percent or 0) for one in vms if one.host == name)
        for name in names
    }
    hosts = [
        host(name, memory_mb=204800, free_mb=204800 - used_mb[name], cores=24, cpu_percent=used[name] / 24)
        for name in names
    ]
    return snapshot(*hosts, *vms, *groups)


def test_pairs_that_must_part_do_not_pile_up_on_the_emptiest_host() -> None:
    problem = problem_of(pairs_that_must_part(1), headroom=0.1)
    choice = Greedy().choose(problem, NEVER)
    assert (choice.score.hard, choice.score.migrations) == (0, 30)
    assert choice.score.headroom_deficit_mb == choice.score.headroom_deficit_cpu == 0
    for size in (problem.memory_mb, problem.cpu):
        fair = fair_share(problem, choice.where, size)
        assert max(rises(problem, choice.where, size).values()) <= 2 * fair


@pytest.mark.system
def test_a_large_cluster_rises_evenly() -> None:
    cluster = generate(Sizes(hosts=500, vms=10_000, groups=1_000, broken=0.2), seed=3)
    problem = problem_of(cluster, headroom=0.1)
    choice = Greedy().choose(problem, NEVER)
    print(f"\n{choice.score.migrations} migrations, at least {choice.bound[-1]} are needed")
    assert (choice.score.hard, sum(choice.score.soft)) == (0, 0)
    assert choice.score.migrations <= 1.1 * choice.bound[-1]
    for title, size in (("memory, MiB", problem.memory_mb), ("CPU, % of a core", problem.cpu)):
        largest = max(rises(problem, choice.where, size).values())
        fair = fair_share(problem, choice.where, size)
        print(f"{title}: largest rise {largest:.0f}, fair share {fair:.0f}")
        assert largest <= 2 * fair


def test_a_poor_end_is_spread_as_well() -> None:
    """Whichever strategy has put all VMs on one host that is as good as others."""
    cluster = snapshot(
        *(host(f"h{number}") for number in range(6)),
        *(vm(f"v{number}", "h0") for number in range(5)),
        *(group(f"g{number}", vms=f"v{number}", hosts_rule=APART, hosts="h0") for number in range(5)),
    )
    where = spread(problem_of(cluster), {f"v{number}": "h1" for number in range(5)})
    assert sorted(where.values()) == ["h1", "h2", "h3", "h4", "h5"]


def test_what_must_stay_together_is_spread_together() -> None:
    cluster = snapshot(
        *(host(f"h{number}") for number in range(3)),
        *(vm(name, "h0") for name in "abcd"),
        group("ab", TOGETHER, "a b", hosts_rule=APART, hosts="h0"),
        group("cd", TOGETHER, "c d", hosts_rule=APART, hosts="h0"),
    )
    where = spread(problem_of(cluster), dict.fromkeys("abcd", "h1"))
    assert where["a"] == where["b"] != where["c"] == where["d"]
    assert set(where.values()) == {"h1", "h2"}


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10**9))
def test_spreading_makes_nothing_worse_that_matters_more(seed: int) -> None:
    cluster = drawn(seed, hosts=6, vms=9, groups=5)
    problem, ends = problem_of(cluster), Ends(cluster)
    for where in (Greedy().choose(problem, NEVER).where, _legal_end(problem, ends, seed)):
        after = spread(problem, where)
        assert ends.value(ends.after(after)) <= ends.value(ends.after(where))
        assert ends.why_illegal(ends.after(after)) is None
        assert after.keys() == where.keys()
        assert _cost(problem, after) <= _cost(problem, where)


def _legal_end(problem: Problem, ends: Ends, seed: int) -> dict[str, str]:
    """Some VMs anywhere that they may go, as long as that is an end."""
    dice = random.Random(seed)
    where: dict[str, str] = {}
    for name in sorted(problem.where):
        others = sorted(problem.targets[name] - {problem.where[name]})
        if others and dice.random() < 0.5:
            further = {**where, name: dice.choice(others)}
            if ends.why_illegal(ends.after(further)) is None:
                where = further
    return where


def _cost(problem: Problem, where: Mapping[str, str]) -> tuple[int, ...]:
    assignment = Assignment(problem)
    for name, target in where.items():
        assignment.move((name,), target)
    return assignment.cost


def test_a_host_kept_for_failover_takes_nothing_where_another_would_do() -> None:
    cluster = snapshot(
        host("h1"),
        host("spare", free_mb=60000, cpu_percent=0, failover=True),
        host("h2"),
        vm("a", "h1"),
        vm("b", "h1"),
        group("g", APART, "a b"),
    )
    assert set(Greedy().choose(pose(cluster, CLUSTER), NEVER).where.values()) == {"h2"}
