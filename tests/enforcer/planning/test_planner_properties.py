"""Plans of tiny clusters against brute force: as good as any can be, legal at each step, reproducible."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_enforcer.planning.plan import Plan
from ovirt_enforcer.planning.planner import apply, make_plan
from ovirt_placement.model import Snapshot
from tests.builders import APART, CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.enforcer.planning.brute_force import BruteForce

RULES = st.sampled_from([TOGETHER, APART])


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Three or four hosts, up to five VMs, up to three hard groups that may contradict each other."""
    hosts = [f"h{number}" for number in range(draw(st.integers(2, 4)))]
    names = [f"v{number}" for number in range(draw(st.integers(2, 5)))]
    members = st.lists(st.sampled_from(names), min_size=2, max_size=4, unique=True).map(" ".join)
    parts = [
        *(
            host(name, free_mb=draw(st.sampled_from([0, 1024, 2048, 4096])), status="up")
            for name in hosts[:-1]
        ),
        host(
            hosts[-1],
            free_mb=draw(st.sampled_from([1024, 4096])),
            status=draw(st.sampled_from(["up", "up", "up", "maintenance", "non_responsive"])),
        ),
        *(
            vm(
                name,
                draw(st.sampled_from([*hosts, hosts[0], None])),
                memory_mb=draw(st.sampled_from([1024, 1024, 2048])),
                migratable=draw(st.integers(0, 5)) > 0,
            )
            for name in names
        ),
        *(group(f"g{number}", draw(RULES), draw(members)) for number in range(draw(st.integers(1, 3)))),
    ]
    if draw(st.booleans()):
        listed = " ".join(draw(st.lists(st.sampled_from(hosts), min_size=1, unique=True)))
        parts.append(group("hosts", vms=draw(members), hosts_rule=draw(RULES), hosts=listed))
    return snapshot(*parts)


def end_of(cluster: Snapshot, plan: Plan) -> tuple[tuple[int, int], int]:
    """Follow the plan with the oracle's eyes: each step must be one that it knows as legal."""
    oracle = BruteForce(cluster)
    at = oracle.start
    migrations = 0
    for step in plan.steps:
        after = tuple(
            step.target if known.id in step.vms else at[number] for number, known in enumerate(oracle.vms)
        )
        assert (after, len(step.vms)) in list(oracle.migrations(at)), f"illegal: {step}"
        at = after
        migrations += len(step.vms)
    return oracle.score(at), migrations


@settings(max_examples=250, deadline=None)
@given(clusters())
def test_no_plan_mends_more_or_needs_fewer_migrations(cluster: Snapshot) -> None:
    plan = make_plan(cluster, CLUSTER)
    assert plan.proven
    assert end_of(cluster, plan) == BruteForce(cluster).best()


@settings(max_examples=100, deadline=None)
@given(clusters(), st.integers(0, 12), st.integers(0, 12))
def test_a_plan_that_ran_out_of_budget_never_makes_things_worse(
    cluster: Snapshot, group_budget: int, whole_budget: int
) -> None:
    plan = make_plan(cluster, CLUSTER, group_budget=group_budget, whole_budget=whole_budget)
    oracle = BruteForce(cluster)
    score, migrations = end_of(cluster, plan)
    assert score <= oracle.score(oracle.start)
    assert migrations == 0 or score < oracle.score(oracle.start)
    if plan.proven:
        assert (score, migrations) == oracle.best()


@settings(max_examples=60, deadline=None)
@given(clusters(), st.randoms(use_true_random=False))
def test_the_order_in_which_the_engine_lists_things_changes_nothing(
    cluster: Snapshot, random: object
) -> None:
    def shuffled(parts: tuple[Any, ...]) -> tuple[Any, ...]:
        mixed = list(parts)
        random.shuffle(mixed)
        return tuple(mixed)

    mixed = msgspec.structs.replace(
        cluster,
        hosts=shuffled(cluster.hosts),
        vms=shuffled(cluster.vms),
        affinity_groups=shuffled(cluster.affinity_groups),
    )
    assert [(step.vms, step.target) for step in make_plan(mixed, CLUSTER).steps] == [
        (step.vms, step.target) for step in make_plan(cluster, CLUSTER).steps
    ]


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_what_remains_broken_is_named_with_a_reason(cluster: Snapshot) -> None:
    plan = make_plan(cluster, CLUSTER)
    score, _ = end_of(cluster, plan)
    assert len(plan.remaining) == score[0]
    assert all(group.because for group in plan.remaining)


@settings(max_examples=40, deadline=None)
@given(clusters())
def test_the_rest_of_a_plan_is_what_a_new_plan_would_cost(cluster: Snapshot) -> None:
    """So a restart between two steps costs no migration."""
    plan = make_plan(cluster, CLUSTER)
    if plan.steps:
        rest = make_plan(apply(cluster, plan.steps[0]), CLUSTER)
        assert rest.migrations == plan.migrations - len(plan.steps[0].vms)
