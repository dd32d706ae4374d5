"""What is left of a plan when its cluster has changed, held against what each step says of itself."""

from __future__ import annotations

from itertools import combinations, count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_enforcer.actions.migrate_vm.fitting_steps import fitting_steps
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.assignment import catalogue
from ovirt_placement.planning.assignment.catalogue import StrategyName
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from tests.builders import CLUSTER
from tests.placement.planning.assignment.clusters import drawn

SEEDS = st.integers(0, 100_000)
ALL = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}))


def plan_for(state: Snapshot) -> Plan:
    return make_plan(state, CLUSTER, options=ALL, strategy=catalogue.strategy(StrategyName.GREEDY))


def planned(seed: int, vms: int, groups: int) -> tuple[Snapshot, Plan]:
    """The first cluster from this seed on for which there is anything to do."""
    drafts = (drawn(one, hosts=4, vms=vms, groups=groups) for one in count(seed))
    return next((state, plan) for state in drafts if (plan := plan_for(state)).steps)


def moved(state: Snapshot, vm: str, place: str) -> Snapshot:
    return replace(state, vms=tuple(replace(one, host=place) if one.id == vm else one for one in state.vms))


def holds(state: Snapshot, group_id: str) -> bool:
    """By the group's definition; groups here share VMs, but each must hold by itself."""
    (group,) = (one for one in state.affinity_groups if one.id == group_id)
    hosts = [state.vm_by_id[vm].host for vm in group.vms]
    if group.vms_rule.enabled:
        pairs = [one == other for one, other in combinations(hosts, 2)]
        return all(pairs) if group.vms_rule.positive else not any(pairs)
    return all((one in group.hosts) is group.hosts_rule.positive for one in hosts)


@pytest.mark.system
@given(SEEDS, st.data())
def test_what_is_left_starts_where_vms_are_waits_for_nothing_lost_and_repairs_what_it_said(
    seed: int, data: st.DataObject
) -> None:
    state, plan = planned(seed, vms=8, groups=5)
    changed = moved(
        state,
        data.draw(st.sampled_from([vm.id for vm in state.vms])),
        data.draw(st.sampled_from([host.id for host in state.hosts])),
    )
    held = data.draw(st.frozensets(st.sampled_from([vm.id for vm in state.vms]), max_size=1))
    kept = fitting_steps(plan, frozenset(range(len(plan.steps))), (), changed, held)
    at = changed
    for place in sorted(kept):
        step = plan.steps[place]
        assert held.isdisjoint(step.vms)
        assert kept.issuperset(step.after)
        for vm, source in zip(step.vms, step.sources, strict=True):
            assert at.vm_by_id[vm].host == source
            at = moved(at, vm, step.target)
    # A later step may break it again for a rule that counts more; then the plan itself says that it remains.
    remaining = {group for rule in plan.remaining for group in rule.groups}
    for place in kept:
        assert all(holds(at, group) for group in set(plan.steps[place].repairs) - remaining)


@given(SEEDS)
def test_all_of_a_plan_fits_the_cluster_that_it_was_made_for(seed: int) -> None:
    state = drawn(seed, hosts=4, vms=8, groups=5)
    plan = plan_for(state)
    places = frozenset(range(len(plan.steps)))
    assert fitting_steps(plan, places, (), state, frozenset()) == places


@pytest.mark.system
@given(SEEDS, SEEDS)
def test_what_happens_in_one_half_of_a_cluster_does_not_touch_the_plan_of_the_other(
    one: int, other: int
) -> None:
    """Two clusters drawn apart, under names of their own, stand as one: no rule and no step ties them."""
    (left, first), (right, second) = planned(one, vms=5, groups=3), planned(other, vms=5, groups=3)
    state = replace(
        left,
        hosts=(*left.hosts, *(replace(host, id=f"r{host.id}") for host in right.hosts)),
        vms=(*left.vms, *(replace(vm, id=f"r{vm.id}", host=f"r{vm.host}") for vm in right.vms)),
        affinity_groups=(
            *left.affinity_groups,
            *(
                replace(
                    group,
                    id=f"r{group.id}",
                    vms=tuple(f"r{vm}" for vm in group.vms),
                    hosts=tuple(f"r{host}" for host in group.hosts),
                )
                for group in right.affinity_groups
            ),
        ),
    )
    number = len(first.steps)
    shifted = tuple(
        replace(
            step,
            vms=tuple(f"r{vm}" for vm in step.vms),
            sources=tuple(f"r{host}" for host in step.sources),
            target=f"r{step.target}",
            groups=tuple(f"r{group}" for group in step.groups),
            repairs=tuple(f"r{group}" for group in step.repairs),
            after=tuple(place + number for place in step.after),
        )
        for step in second.steps
    )
    renamed = tuple(
        replace(rule, groups=tuple(f"r{group}" for group in rule.groups)) for rule in second.remaining
    )
    both = replace(first, steps=(*first.steps, *shifted), remaining=(*first.remaining, *renamed))
    places = frozenset(range(len(both.steps)))
    assert fitting_steps(both, places, (), state, frozenset(first.steps[0].vms)) >= frozenset(
        range(number, len(both.steps))
    )
