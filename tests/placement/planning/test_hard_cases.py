"""Cases at which an earlier planner failed: too slow, wrongly proven, blind to a family, all on one host."""

import time

import msgspec
import pytest

from ovirt_placement.answers.plans import obstacle_text
from ovirt_placement.model import Snapshot
from ovirt_placement.planning import remaining, strategies
from ovirt_placement.planning.plan import NEVER, Deadline, Obstacle, ObstacleKind, Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, legal, pose
from ovirt_placement.planning.remaining import End, remains
from ovirt_placement.planning.steps import apply
from ovirt_placement.planning.strategies import StrategyName
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_TOGETHER,
    TOGETHER,
    cluster,
    group,
    host,
    snapshot,
    vm,
)
from tests.speed import of_processor, seconds_here

ALL = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}))
#: What a plan of a large group may take, of the processor's time; other tests run besides it.
PATIENCE_SECONDS = 5
#: The same where it has a thousand steps, each of which all rules judge.
MORE_PATIENCE_SECONDS = 10


def planned(state: Snapshot, options: PlanOptions = ALL, seconds: float = 20.0) -> Plan:
    plan = make_plan(state, CLUSTER, options=options, deadline=of_processor(seconds))
    for step in plan.steps:
        assert legal(state, step)
        state = apply(state, step)
    return plan


def quickly_planned(state: Snapshot, patience_seconds: float = PATIENCE_SECONDS) -> Plan:
    began = time.process_time()
    plan = make_plan(state, CLUSTER, options=ALL, deadline=Deadline(lambda: 20.0))
    assert time.process_time() - began < seconds_here(patience_seconds)
    return plan


def moves(plan: Plan) -> list[str]:
    return [f"{' '.join(step.vms)} to {step.target}" for step in plan.steps]


@pytest.mark.system
def test_one_collision_in_a_negative_group_of_a_thousand_vms() -> None:
    names = [f"v{number:04}" for number in range(1000)]
    state = snapshot(
        *(host(f"h{number:04}") for number in range(1002)),
        *(vm(name, f"h{max(1, number):04}") for number, name in enumerate(names)),
        group("g", APART, " ".join(names)),
    )
    plan = quickly_planned(state)
    assert plan.migrations == 1
    assert plan.remaining == ()
    assert plan.proven


def test_a_positive_group_of_sixty_vms_on_six_hosts() -> None:
    names = [f"v{number:02}" for number in range(60)]
    state = snapshot(
        *(host(f"h{number}", memory_mb=131072, free_mb=65536) for number in range(6)),
        *(vm(name, f"h{number % 6}") for number, name in enumerate(names)),
        group("g", TOGETHER, " ".join(names)),
    )
    plan = quickly_planned(state)
    assert plan.migrations == 50
    assert plan.remaining == ()
    assert plan.proven


@pytest.mark.nightly
def test_a_positive_group_of_a_thousand_vms_on_fifty_hosts() -> None:
    names = [f"v{number:04}" for number in range(1000)]
    state = snapshot(
        *(host(f"h{number:02}", memory_mb=2**22, free_mb=2**21) for number in range(50)),
        *(vm(name, f"h{number % 50:02}") for number, name in enumerate(names)),
        group("g", TOGETHER, " ".join(names)),
    )
    plan = quickly_planned(state, MORE_PATIENCE_SECONDS)
    assert plan.migrations == 980
    assert plan.remaining == ()
    assert plan.crowded == (plan.steps[0].target,)  # by their CPU


def test_of_hard_groups_that_contradict_each_other_the_rest_is_repaired_by_one_move() -> None:
    state = snapshot(
        host("h1"), host("h2"), host("h3"),
        vm("a", "h1"), vm("b", "h1"), vm("c", "h1"),
        group("with", TOGETHER, "a b"), group("without", APART, "a b"), group("other", APART, "a c"),
    )  # fmt: skip
    plan = planned(state)
    assert moves(plan) in (["c to h2"], ["c to h3"])
    assert [rule.groups for rule in plan.remaining] == [("without",)]
    assert plan.proven


def test_a_pair_that_stands_together_goes_whole_to_the_host_of_one() -> None:
    state = snapshot(
        host("h1"), host("h3"), vm("a", "h1"), vm("b", "h1"),
        group("with", TOGETHER, "a b"), group("on", vms="a", hosts_rule=TOGETHER, hosts="h3"),
    )  # fmt: skip
    plan = planned(state, PlanOptions())
    assert moves(plan) == ["a b to h3"]
    assert plan.steps[0].closure
    assert plan.remaining == ()


def test_no_vm_goes_to_a_host_whose_cpu_is_taken_while_another_will_do() -> None:
    state = snapshot(
        host("h1"), host("busy", cpu_percent=99, free_mb=60000), host("h3", free_mb=8000),
        vm("a", "h1", vcpus=4, usage_cpu_percent=80), vm("b", "h1", migratable=False),
        group("g", APART, "a b"),
    )  # fmt: skip
    headroom = PlanOptions(memory_headroom=0.1, cpu_headroom=0.1)
    plan = planned(state, headroom)
    assert moves(plan) == ["a to h3"]
    assert plan.crowded == ()


def test_headroom_is_given_up_for_a_hard_rule_alone_and_said() -> None:
    parts = (host("h1"), host("h2", cpu_percent=88), vm("a", "h1", vcpus=4, usage_cpu_percent=80))
    other = vm("b", "h1", migratable=False)
    headroom = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}), cpu_headroom=0.1)
    hard = planned(snapshot(*parts, other, group("g", APART, "a b")), headroom)
    assert (moves(hard), hard.crowded) == (["a to h2"], ("h2",))
    near = group("near", vms="a", hosts_rule=SOFT_TOGETHER, hosts="h2")
    soft = planned(snapshot(*parts, other, near), headroom)
    assert (moves(soft), soft.crowded) == ([], ())


def test_ha_reservation_is_not_made_worse() -> None:
    """On h2, the emptier one, it would take the room that big needs there if h3 failed."""
    state = snapshot(
        cluster(ha_reservation=True),
        host("h1", memory_mb=20480, free_mb=0),
        host("h2", memory_mb=16384, free_mb=10240),
        host("h3", memory_mb=16384, free_mb=9216),
        vm("big", "h3", needs_mb=6144, guaranteed_mb=6144, ha=True, migratable=False),
        vm("a", "h1", needs_mb=5120),
        vm("b", "h1", needs_mb=12288, guaranteed_mb=0, usage_mem_percent=0, migratable=False),
        group("g", APART, "a b"),
    )
    assert moves(planned(state)) == ["a to h3"]
    unreserved = msgspec.structs.replace(state, clusters=(cluster(),))
    assert moves(planned(unreserved)) == ["a to h2"]


@pytest.mark.parametrize("strategy", [StrategyName.OPTIMAL, StrategyName.GREEDY])
def test_what_is_left_out_for_the_ha_reservation_is_said(strategy: StrategyName) -> None:
    """The one other host is the one that big would start on if h2 failed."""
    state = snapshot(
        cluster(ha_reservation=True),
        host("h1", memory_mb=16384, free_mb=8192),
        host("h2", memory_mb=16384, free_mb=0),
        vm("big", "h2", needs_mb=6144, guaranteed_mb=6144, ha=True, migratable=False),
        vm("a", "h2", needs_mb=5120),
        vm("b", "h2", needs_mb=5120, migratable=False),
        group("g", APART, "a b"),
    )
    plan = make_plan(state, CLUSTER, strategy=strategies.strategy(strategy))
    assert not plan.steps
    (left,) = plan.remaining
    found = left.obstacles[0]
    assert found.kind is ObstacleKind.RESERVATION
    assert (found.vms, found.hosts, found.unplaced) == (("a",), ("h2",), ("big",))
    assert (found.needed, found.available) == (1, 0)
    assert obstacle_text(found, state).startswith(
        "migrations of a were left out: if h2 failed after them, big would not restart (over all failures 1"
    )
    unreserved = msgspec.structs.replace(state, clusters=(cluster(),))
    assert moves(planned(unreserved)) == ["a to h1"]


def test_a_negative_group_with_more_vms_than_hosts_says_so_however_large_it_is() -> None:
    names = [f"v{number:03}" for number in range(300)]
    state = snapshot(
        *(host(f"h{number:03}") for number in range(200)),
        *(vm(name, f"h{number % 200:03}") for number, name in enumerate(names)),
        group("g", APART, " ".join(names)),
    )
    (left,) = remains(End(state, pose(state, CLUSTER), (), proven=False), NEVER)
    assert left.obstacles[0] == Obstacle(ObstacleKind.HOST_EACH, needed=300, available=200, count=300)


def test_hosts_are_asked_only_while_there_is_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a large cluster each question takes long, and one that is accepted reports nothing."""
    state = snapshot(
        *(host(f"h{number}") for number in range(6)), vm("a", "h0"), vm("b", "h0"), group("g", APART, "a b")
    )
    asked: list[object] = []
    monkeypatch.setattr(remaining, "_why_not", lambda *question: iter(asked.append(question) or ()))
    deadline = Deadline(lambda: 1.0 if len(asked) < 2 else 0.0)
    (left,) = remains(End(state, pose(state, CLUSTER), (), proven=False), deadline)
    assert (len(asked), left.obstacles) == (2, (Obstacle(ObstacleKind.NOT_FOUND),))
