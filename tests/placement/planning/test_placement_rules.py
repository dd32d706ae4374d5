"""Plans for placement rules of every kind against brute force: all placements that legal migrations reach."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ovirt_placement.model import RuleDomain, Snapshot
from ovirt_placement.planning.plan import NEVER
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.strategies import StrategyName, strategy
from ovirt_placement.rules.placement_rules.in_force import KINDS
from tests.builders import CLUSTER, host, needed_mb, rule, snapshot, vm
from tests.examples import examples
from tests.placement.planning.clocks import of_processor
from tests.placement.rules.placement_rules.drawn import placement_rules
from tests.placement.rules.placement_rules.oracle import distance, lets_step, satisfied

HOSTS = ("h1", "h2", "h3", "h4")
VMS = ("a", "b", "c", "d")
At = tuple[str, ...]
FEW = settings(
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@st.composite
def states(draw: st.DrawFn, kind: str | None = None) -> Snapshot:
    hosts = [host(name, free_mb=draw(st.sampled_from([500, 1024, 8192, 8192]))) for name in HOSTS]
    vms = [
        vm(name, draw(st.sampled_from(HOSTS[:3])), migratable=draw(st.integers(0, 5)) > 0)
        for name in VMS
    ]  # fmt: skip
    every = tuple(KINDS)
    chosen = (kind,) if kind else every
    rules = [
        draw(placement_rules(f"r{number}", VMS, HOSTS, chosen if number == 0 else every, enforcing=True))
        for number in range(draw(st.integers(1, 2)))
    ]
    return snapshot(*hosts, *vms, *rules)


def best(state: Snapshot) -> tuple[int, int, int]:
    """The least that legal migrations leave violated, rules and then their excess, and the fewest that do."""
    start: At = tuple(one.host or "" for one in state.vms)
    cost = {start: 0}
    queue = deque([start])
    while queue:
        at = queue.popleft()
        for after in migrations(state, at):
            if after not in cost:
                cost[after] = cost[at] + 1
                queue.append(after)
    return min((violated(state, at), excess(state, at), moves) for at, moves in cost.items())


def violated(state: Snapshot, at: At) -> int:
    return sum(not satisfied(rule, state, placed(state, at)) for rule in state.placement_rules)


def excess(state: Snapshot, at: At) -> int:
    """By how much rules are violated; but for those that draw VMs to each other."""
    limits = [one for one in state.placement_rules if one.kind != "same_domain"]
    return sum(distance(one, state, placed(state, at)) for one in limits)


def placed(state: Snapshot, at: At) -> dict[str, str]:
    return dict(zip((one.id for one in state.vms), at, strict=True))


def migrations(state: Snapshot, at: At) -> Iterator[At]:
    for number, one in enumerate(state.vms):
        for to in state.hosts:
            after = (*at[:number], to.id, *at[number + 1 :])
            if (
                one.migratable
                and at[number] != to.id
                and fits(state, after, to.id)
                and legal(state, at, after)
            ):
                yield after


def fits(state: Snapshot, after: At, to: str) -> bool:
    known = state.host_by_id[to]
    room = known.free_mb + sum(needed_mb(one) for one in state.vms if one.host == to)
    return sum(needed_mb(one) for one, there in zip(state.vms, after, strict=True) if there == to) <= room


def legal(state: Snapshot, at: At, after: At) -> bool:
    """Each rule lets the VM come, or is no more violated than before; none that is satisfied is violated."""
    (number,) = (number for number, pair in enumerate(zip(at, after, strict=True)) if pair[0] != pair[1])
    before, then = placed(state, at), placed(state, after)
    return all(
        lets_step(rule, state, before, state.vms[number].id, after[number])
        and (satisfied(rule, state, then) or not satisfied(rule, state, before))
        for rule in state.placement_rules
    )


def check(state: Snapshot, name: StrategyName) -> None:
    plan = make_plan(state, CLUSTER, strategy=strategy(name), deadline=NEVER)
    at: At = tuple(one.host or "" for one in state.vms)
    for step in plan.steps:
        (moved,) = step.vms
        number = [one.id for one in state.vms].index(moved)
        after = (*at[:number], step.target, *at[number + 1 :])
        assert fits(state, after, step.target)
        assert legal(state, at, after)
        at = after
    found = (violated(state, at), excess(state, at), len(plan.steps))
    assert found >= best(state)
    assert len(plan.remaining) == violated(state, at)
    if plan.proven:
        assert found == best(state)


@pytest.mark.system
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimal_plan_of_each_kind_is_the_best_there_is(kind: str) -> None:
    reached: list[bool] = []

    @FEW
    @given(states(kind))
    def plan(state: Snapshot) -> None:
        check(state, StrategyName.OPTIMAL)
        plan = make_plan(state, CLUSTER, strategy=strategy(StrategyName.OPTIMAL), deadline=NEVER)
        best_violated, _, fewest = best(state)
        assert len(plan.remaining) == best_violated
        reached.append(len(plan.steps) == fewest)

    plan()
    assert all(reached)


@FEW
@given(states())
def test_no_step_of_a_greedy_plan_violates_a_rule(state: Snapshot) -> None:
    check(state, StrategyName.GREEDY)


RACKS = tuple(
    RuleDomain(name=f"r{rack}", hosts=tuple(f"h{rack}{number}" for number in range(4))) for rack in range(3)
)


@pytest.mark.system
@pytest.mark.parametrize(
    ("kind", "fields", "fewest"),
    [
        ("at_most_per_host", {"most": 2}, 16),
        ("at_most_per_domain", {"most": 8, "domains": RACKS}, 16),
        ("spread", {"max_skew": 1, "domains": RACKS}, 16),
        ("minimum_domains", {"least": 3, "domains": RACKS}, 2),
        ("same_domain", {"domains": RACKS[1:]}, 24),
        ("exclusive_hosts", {"hosts": "h00 h01 h02 h03", "vms": "v0 v1 v2 v3"}, 20),
        ("capacity", {"hosts": "h00 h01 h02 h03", "most": 10, "counted": "vcpus"}, 14),
    ],
)
def test_two_dozen_vms_in_one_rack_are_moved_in_the_fewest_migrations(
    kind: str, fields: dict[str, Any], fewest: int
) -> None:
    """Too many placements to try all: what the forms say finds them."""
    names = [f"v{number}" for number in range(24)]
    asked = {"vms": " ".join(names), **fields}
    state = snapshot(
        *(host(name) for rack in RACKS for name in rack.hosts),
        *(vm(name, f"h0{number % 4}") for number, name in enumerate(names)),
        rule("r", kind, asked.pop("vms"), **asked),
    )
    plan = make_plan(state, CLUSTER, strategy=strategy(StrategyName.OPTIMAL), deadline=of_processor(8))
    assert plan.remaining == ()
    assert len(plan.steps) == fewest
