"""Plans of tiny clusters with rules of every kind at once, groups that move whole among them: by brute force.

The oracle knows the rules from their definitions alone, judges every state on the way, and shares no code
with the planner or the rules.
"""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import Host, PlacementRule, RuleDomain, Snapshot, Vm
from ovirt_placement.planning.plan import NEVER, Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.strategies import StrategyName, strategy
from ovirt_placement.rules.placement_rules.in_force import KINDS
from tests.builders import (
    APART,
    CLUSTER,
    DISABLED,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    cluster,
    group,
    host,
    rule,
    snapshot,
    vm,
)
from tests.examples import examples
from tests.placement.planning.brute_force import Assignment, BruteForce, Violations
from tests.placement.planning.plans import ALL
from tests.placement.rules.placement_rules.drawn import placement_rules
from tests.placement.rules.placement_rules.oracle import (
    concerns,
    distance,
    draws_all_at_once,
    lets_step,
    satisfied,
)
from tests.speed import of_processor

SLOW = settings(deadline=None, suppress_health_check=list(HealthCheck))


class Mixed(BruteForce):
    """Affinity groups and placement rules together."""

    def __init__(self, state: Snapshot) -> None:
        super().__init__(state)
        soft = {one.priority for one in state.placement_rules if not one.enforcing}
        self.priorities = sorted({*self.priorities, *soft}, reverse=True)
        self.concerned = {
            one.name: [at for at, known in enumerate(self.vms) if concerns(one, state, known.id)]
            for one in state.placement_rules
        }
        self.known: dict[tuple[object, ...], bool | int] = {}

    def named(self, at: Assignment) -> dict[str, str]:
        return {known.id: there for known, there in zip(self.vms, at, strict=True)}

    def satisfied(self, rule: PlacementRule, at: Assignment) -> bool:
        key = (rule.name, *(at[one] for one in self.concerned[rule.name]))
        if key not in self.known:
            self.known[key] = satisfied(rule, self.snapshot, self.named(at))
        return bool(self.known[key])

    def score(self, at: Assignment) -> Violations:
        hard, *levels = super().score(at)
        violated = [one for one in self.snapshot.placement_rules if not self.satisfied(one, at)]
        soft = [
            count + sum(not one.enforcing and one.priority == level for one in violated)
            for count, level in zip(levels, self.priorities, strict=True)
        ]
        return (hard + sum(one.enforcing for one in violated), *soft)

    def worth(self, at: Assignment) -> Violations:
        """The score, and by how much hard limits remain violated."""
        limits = [one for one in self.snapshot.placement_rules if one.enforcing and one.kind != "same_domain"]
        return (*self.score(at), sum(self.distance(one, at) for one in limits))

    def distance(self, rule: PlacementRule, at: Assignment) -> int:
        key = ("distance", rule.name, *(at[one] for one in self.concerned[rule.name]))
        if key not in self.known:
            self.known[key] = distance(rule, self.snapshot, self.named(at))
        return self.known[key]

    def may_go(self, at: Assignment, moving: tuple[int, ...], host: str) -> bool:
        if not super().may_go(at, moving, host):
            return False
        binding = [one for one in self.snapshot.placement_rules if one.enforcing and one.continuous]
        return all(self.lets(one, at, moving, host) for one in binding)

    def lets(self, rule: PlacementRule, at: Assignment, moving: tuple[int, ...], to: str) -> bool:
        concerned = self.concerned[rule.name]
        if not any(one in concerned for one in moving):
            return True
        key = ("lets", rule.name, moving, to, *(at[one] for one in concerned))
        if key not in self.known:
            names = sorted(self.vms[number].id for number in moving)
            self.known[key] = self.lets_in_turn(rule, self.named(at), names, to)
        return bool(self.known[key])

    def lets_in_turn(self, rule: PlacementRule, at: dict[str, str], names: list[str], to: str) -> bool:
        """One after another, each there for the next; what draws VMs together is asked of all at once."""
        state, then = self.snapshot, {**at, **dict.fromkeys(names, to)}
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
VMS = ("a", "b", "c", "d", "e", "f", "g")
HARD = (TOGETHER, TOGETHER, APART, DISABLED)
EVERY = (*HARD, SOFT_APART, SOFT_TOGETHER)
STATUSES = ("maintenance", "non_responsive", "preparing_for_maintenance", "non_operational")


@st.composite
def clusters(
    draw: st.DrawFn, placements: int, kinds: tuple[str, ...] = tuple(KINDS), down: tuple[str, ...] = ()
) -> Snapshot:
    """At most four hosts and seven VMs; of these as many may move as have this number of placements.

    The first rule is of one of these kinds; VMs that are down may be members of rules.
    """
    names = HOSTS[: draw(st.integers(2, 4))]
    vms = VMS[: draw(st.integers(2, 7))]
    up = draw(st.integers(0, 4)) > 0
    hosts: list[Host] = [
        host(
            name,
            free_mb=draw(st.sampled_from([0, 1200, 2400, 60_000])),
            status="up" if up or name != names[-1] else draw(st.sampled_from(STATUSES)),
        )
        for name in names
    ]
    running: list[Vm] = []
    for name in vms:
        placements //= len(names)
        listed = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        running.append(
            vm(
                name,
                draw(st.sampled_from(names)),
                needs_mb=draw(st.sampled_from([1024, 1024, 2048])),
                vcpus=draw(st.sampled_from([1, 1, 2, 4])),
                migratable=placements > 0 and draw(st.integers(0, 7)) > 0,
                pinned_hosts=tuple(listed) if draw(st.integers(0, 7)) == 0 else (),
                ha=draw(st.booleans()),
                usage_cpu_percent=0,
            )
        )
    wanted_kinds = (kinds, tuple(KINDS))[: draw(st.integers(len(kinds) < len(KINDS), 2))]
    rules = [
        draw(placement_rules(f"r{at}", (*down, *vms), names, of, enforcing=draw(st.integers(0, 3)) > 0))
        for at, of in enumerate(wanted_kinds)
    ]
    rules = [replace(one, continuous=not one.enforcing or draw(st.integers(0, 4)) > 0) for one in rules]
    groups = []
    for number in range(draw(st.integers(not rules, 3))):
        members = draw(st.lists(st.sampled_from(vms), min_size=2, max_size=4, unique=True))
        wanted = draw(st.sampled_from(EVERY))
        if wanted is TOGETHER and draw(st.booleans()):  # it stands whole, so that it moves whole
            home = draw(st.sampled_from(names))
            running = [replace(one, host=home) if one.id in members else one for one in running]
        groups.append(
            group(
                f"g{number}",
                wanted,
                " ".join(members),
                hosts_rule=draw(st.sampled_from((DISABLED, *EVERY))),
                hosts=draw(st.sampled_from(names)),
                priority=draw(st.sampled_from([1.0, 5.0])),
            )
        )
    reserves = draw(st.integers(0, 4)) == 0
    return snapshot(cluster(ha_reservation=reserves), *hosts, *running, *rules, *groups)


@dataclass(frozen=True)
class Followed:
    """What a plan reaches, with how many migrations, and what it says of itself."""

    worth: Violations
    migrations: int
    plan: Plan

    @property
    def reached(self) -> tuple[Violations, int]:
        return self.worth, self.migrations


def followed(oracle: Mixed, name: StrategyName) -> Followed:
    """Each step of the plan must be one that is known to be legal."""
    plan = make_plan(
        oracle.snapshot, CLUSTER, options=ALL, strategy=strategy(name), deadline=NEVER, explained=False
    )
    at, migrations = oracle.follow(plan.steps)
    assert len(plan.remaining) == sum(oracle.score(at))
    # So that plan after plan comes to an end, none takes back what one before it has done.
    assert not plan.steps or oracle.worth(at) < oracle.worth(oracle.start)
    return Followed(oracle.worth(at), migrations, plan)


def check(state: Snapshot) -> None:
    oracle = Mixed(state)
    best = oracle.best()
    optimal, greedy = (followed(oracle, name) for name in (StrategyName.OPTIMAL, StrategyName.GREEDY))
    for found in (optimal, greedy):
        assert found.reached >= best
        assert not found.plan.proven or found.reached == best
        assert found.worth != best[0] or found.plan.at_least <= best[1]
    # What highly available VMs would lose may keep a plan from the best there is.
    if not state.clusters[0].ha_reservation:
        assert optimal.worth == best[0]
        assert optimal.reached <= greedy.reached


@pytest.mark.parametrize(
    ("placements", "number"),
    [
        (128, 8),
        pytest.param(1_024, 200, marks=pytest.mark.system),
        pytest.param(4_096, 10_000, marks=pytest.mark.nightly),
    ],
)
def test_no_false_proof_no_illegal_step_and_nothing_better(placements: int, number: int) -> None:
    settings(SLOW, max_examples=number)(given(clusters(placements))(check))()


@pytest.mark.system
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimal_plan_of_each_kind_is_the_best_there_is(kind: str) -> None:
    settings(SLOW, max_examples=examples(40))(given(clusters(256, (kind,)))(check))()


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
    assert (plan.remaining, len(plan.steps)) == ((), fewest)
