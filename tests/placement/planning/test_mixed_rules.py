"""Plans of tiny clusters with rules of every kind at once, groups that move whole among them: by brute force.

The oracle knows the rules from their definitions alone, judges every state on the way, and shares no code
with the planner or the rules.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import Host, PlacementRule, Snapshot, Vm
from ovirt_placement.planning.assignment.catalogue import StrategyName, strategy
from ovirt_placement.planning.deadline import NEVER
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from tests.builders import APART, CLUSTER, DISABLED, TOGETHER, group, host, snapshot, vm
from tests.placement.planning.brute_force import Assignment, BruteForce, Violations
from tests.placement.rules.placement_rules.drawn import placement_rules
from tests.placement.rules.placement_rules.oracle import concerns, draws_all_at_once, lets_step, satisfied

ALL = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}))
SLOW = settings(deadline=None, suppress_health_check=list(HealthCheck))


class Mixed(BruteForce):
    """Affinity groups and placement rules together."""

    def __init__(self, state: Snapshot) -> None:
        super().__init__(state)
        soft = {one.priority for one in state.placement_rules if not one.enforcing}
        self.priorities = sorted({*self.priorities, *soft}, reverse=True)

    def named(self, at: Assignment) -> dict[str, str]:
        return {known.id: there for known, there in zip(self.vms, at, strict=True)}

    def score(self, at: Assignment) -> Violations:
        hard, *levels = super().score(at)
        violated = [
            one for one in self.snapshot.placement_rules if not satisfied(one, self.snapshot, self.named(at))
        ]
        soft = [
            count + sum(not one.enforcing and one.priority == level for one in violated)
            for count, level in zip(levels, self.priorities, strict=True)
        ]
        return (hard + sum(one.enforcing for one in violated), *soft)

    def may_go(self, at: Assignment, moving: tuple[int, ...], host: str) -> bool:
        if not super().may_go(at, moving, host):
            return False
        names = sorted(self.vms[number].id for number in moving)
        binding = [one for one in self.snapshot.placement_rules if one.enforcing and one.continuous]
        return all(self.lets(one, self.named(at), names, host) for one in binding)

    def lets(self, rule: PlacementRule, at: dict[str, str], names: list[str], to: str) -> bool:
        """One after another, each there for the next; what draws VMs together is asked of all at once."""
        state, then = self.snapshot, {**at, **dict.fromkeys(names, to)}
        if not any(concerns(rule, state, name) for name in names):
            return True
        if satisfied(rule, state, at) and not satisfied(rule, state, then):
            return False
        if rule.kind == "same_domain" and draws_all_at_once(rule, at, names, to):
            return True
        for name in names:
            if concerns(rule, state, name) and not lets_step(rule, state, at, name, to):
                return False
            at = {**at, name: to}
        return True


HOSTS = ("h1", "h2", "h3", "h4")
VMS = ("a", "b", "c", "d", "e")


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """At most four hosts and five VMs, half of them full, some VMs pinned or not to be moved."""
    names = HOSTS[: draw(st.integers(2, 4))]
    vms = VMS[: draw(st.integers(2, 5 if len(names) < 4 else 4))]
    hosts: list[Host] = [host(name, free_mb=draw(st.sampled_from([0, 1200, 60_000]))) for name in names]
    running: list[Vm] = [
        vm(name, draw(st.sampled_from(names)), migratable=draw(st.integers(0, 7)) > 0, usage_cpu_percent=0)
        for name in vms
    ]
    rules = [
        draw(placement_rules(f"r{number}", vms, names, enforcing=draw(st.integers(0, 3)) > 0))
        for number in range(draw(st.integers(1, 2)))
    ]
    rules = [replace(one, continuous=not one.enforcing or draw(st.integers(0, 4)) > 0) for one in rules]
    groups = []
    for number in range(draw(st.integers(0, 2))):
        members = " ".join(draw(st.lists(st.sampled_from(vms), min_size=2, max_size=3, unique=True)))
        listed = draw(st.sampled_from(names))
        by_host = draw(st.sampled_from([DISABLED, TOGETHER, APART]))
        by_vm = draw(st.sampled_from([TOGETHER, TOGETHER, APART, DISABLED]))
        groups.append(group(f"g{number}", by_vm, members, hosts_rule=by_host, hosts=listed))
    return snapshot(*hosts, *running, *rules, *groups)


def followed(state: Snapshot, name: StrategyName) -> tuple[tuple[Violations, int], bool]:
    """What a plan reaches, and whether that is called proven; each of its steps must be one that is known."""
    plan = make_plan(state, CLUSTER, options=ALL, strategy=strategy(name), deadline=NEVER, explained=False)
    oracle, migrations = Mixed(state), 0
    at = oracle.start
    for step in plan.steps:
        after = tuple(
            step.target if known.id in step.vms else at[number] for number, known in enumerate(oracle.vms)
        )
        assert (after, len(step.vms)) in list(oracle.migrations(at)), f"illegal: {step}"
        at, migrations = after, migrations + len(step.vms)
    assert len(plan.remaining) == sum(oracle.score(at))
    return (oracle.worth(at), migrations), plan.proven


def check(state: Snapshot) -> None:
    best = Mixed(state).best()
    optimal, proven = followed(state, StrategyName.OPTIMAL)
    greedy, called_proven = followed(state, StrategyName.GREEDY)
    assert optimal[0] == best[0]
    assert best <= optimal <= greedy
    assert not proven or optimal == best
    assert not called_proven or greedy == best


@settings(SLOW, max_examples=6)
@given(clusters())
def test_a_few_mixtures_have_no_false_proof_and_no_illegal_step(state: Snapshot) -> None:
    check(state)


@pytest.mark.system
@settings(SLOW, max_examples=200)
@given(clusters())
def test_no_false_proof_no_illegal_step_and_nothing_better(state: Snapshot) -> None:
    check(state)


@pytest.mark.nightly
@settings(SLOW, max_examples=10_000)
@given(clusters())
def test_the_same_of_very_many(state: Snapshot) -> None:
    check(state)
