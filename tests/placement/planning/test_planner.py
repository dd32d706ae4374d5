"""What a plan says and why, case by case; that plans are the best is tested against brute force next door."""

from collections.abc import Iterator

import msgspec
import pytest

from ovirt_placement.answers.plans import obstacle_text
from ovirt_placement.model import AffinityRule, Host, RuleDomain, Snapshot
from ovirt_placement.planning import planner, remaining
from ovirt_placement.planning.plan import NEVER, Deadline, Obstacle, ObstacleKind, Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, pose
from ovirt_placement.planning.problem.ends import Strategy
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.remaining import End, Harm, remains
from ovirt_placement.planning.steps import misfit
from ovirt_placement.planning.strategies import Solution, StrategyName, solve, strategy
from ovirt_placement.rules.elements.verdict import Request
from ovirt_placement.rules.failover.outcomes import Loss
from ovirt_placement.rules.placement_rules.units import filter_hosts
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    Part,
    cluster,
    group,
    host,
    label,
    pending,
    rule,
    snapshot,
    vm,
)
from tests.placement.planning.plans import ALL, EACH, moves

HOSTS = (host("h1"), host("h2"), host("h3"))


def planned(*parts: Part, **options: dict[str, str]) -> Plan:
    return make_plan(snapshot(*parts), CLUSTER, **options)


def why(plan: Plan) -> str:
    found = (one for rule in plan.remaining for one in rule.obstacles)
    return "\n".join(obstacle_text(one, snapshot()) for one in found)


@EACH
def test_two_parts_that_each_stand_whole_become_one_by_one_request(name: StrategyName) -> None:
    state = snapshot(
        host("h1"), host("h2"),
        vm("a", "h1"), vm("b", "h1"), vm("c", "h2"), vm("d", "h2"), vm("e", "h2"), vm("link", None),
        group("two", TOGETHER, "a b link"), group("three", TOGETHER, "c d e link"),
    )  # fmt: skip
    plan = make_plan(state, CLUSTER, strategy=strategy(name))
    assert (moves(plan), plan.steps[0].closure, plan.remaining) == (["a b to h2"], True, ())


ONE_RACK = rule(
    "one-rack",
    "same_domain",
    "a b",
    domains=(RuleDomain(name="r0", hosts=("h1",)), RuleDomain(name="r1", hosts=("h2", "h3"))),
)
NOT_TIED = snapshot(*HOSTS, vm("a", "h1"), vm("b", "h1"), ONE_RACK)
TIED = snapshot(
    *HOSTS, vm("a", "h1"), vm("b", "h1"), ONE_RACK,
    group("off", TOGETHER, "a b", hosts_rule=APART, hosts="h1"),
)  # fmt: skip


@EACH
def test_a_group_goes_to_another_failure_domain_at_once(name: StrategyName) -> None:
    plan = make_plan(TIED, CLUSTER, strategy=strategy(name))
    assert moves(plan) in (["a b to h2"], ["a b to h3"])
    assert (plan.proven, plan.remaining) == (True, ())


@EACH
def test_a_split_pair_meets_in_one_failure_domain(name: StrategyName) -> None:
    state = snapshot(*HOSTS, vm("a", "h1"), vm("b", "h2"), ONE_RACK)
    plan = make_plan(state, CLUSTER, strategy=strategy(name))
    assert (plan.migrations, plan.proven, plan.remaining) == (1, True, ())


@pytest.mark.parametrize(("state", "passes"), [(TIED, True), (NOT_TIED, False)])
def test_the_engine_is_let_pass_that_asks_for_one_vm_where_it_moves_all(
    state: Snapshot, passes: bool
) -> None:
    found = filter_hosts(state, Request(("a",), ("h2", "h3"), as_engine=True))
    assert [one.accepted for one in found] == [passes, passes]


@EACH
def test_the_cheapest_vm_leaves_for_the_roomiest_host_that_is_no_failover_host(name: StrategyName) -> None:
    hosts = (host("h1"), host("h2", free_mb=9000), host("h3", free_mb=20000), host("h4", failover=True))
    vms = vm("big", "h1", needs_mb=8192), vm("small", "h1")
    state = snapshot(*hosts, *vms, group("g", APART, "big small"))
    assert moves(make_plan(state, CLUSTER, strategy=strategy(name))) == ["small to h3"]


def test_members_in_other_clusters_do_not_count() -> None:
    plan = planned(
        cluster(), cluster("other"), *HOSTS, host("far", cluster="other"),
        vm("a", "h1"), vm("stranger", "far", cluster="other"),
        group("g", TOGETHER, vm_labels=("l",)), label("l", "a stranger"),
    )  # fmt: skip
    assert (plan.steps, plan.remaining, plan.proven) == ((), (), True)


def test_a_vm_about_to_start_is_reckoned_with() -> None:
    plan = planned(
        host("h1"), host("h2"), host("h3", free_mb=2048),
        vm("a", "h1"), vm("b", "h1"), vm("c"), pending("c", "h2"), group("g", APART, "a b c"),
    )  # fmt: skip
    assert moves(plan) == ["a to h3"]


def test_of_hard_groups_that_contradict_each_other_the_rest_is_repaired_by_one_move() -> None:
    contradiction = group("with", TOGETHER, "a b"), group("without", APART, "a b")
    vms = vm("a", "h1"), vm("b", "h1"), vm("c", "h1")
    plan = planned(*HOSTS, *vms, *contradiction, group("other", APART, "a c"))
    assert moves(plan) in (["c to h2"], ["c to h3"])
    assert ([rule.groups for rule in plan.remaining], plan.proven) == ([("without",)], True)


TWO = host("h1"), host("h2")
PAIR = vm("a", "h1"), vm("b", "h1")
RIVALS = group("g", APART, "a b")


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (
            (*TWO, *PAIR, vm("c", "h2"), group("g", APART, "a b c")),
            "its 3 running VMs need a host each, and only 2 can have one",
        ),
        ((host("h1"), host("h2", free_mb=1), *PAIR, RIVALS), "a to h2: 1024 MiB needed, 1 MiB free"),
        (
            (host("h1"), host("h2", status="reboot"), *PAIR, RIVALS),
            "a to h2: the host has status reboot",
        ),
        (
            (*TWO, *PAIR, RIVALS, group("near", vms="a b", hosts_rule=TOGETHER, hosts="h1")),
            "a to h2: VM a may only run on the hosts of affinity group near",
        ),
        (
            (*TWO, vm("a", "h1"), vm("b", "h2"), group("g", TOGETHER, "a b"), group("n", APART, "a b")),
            "a and b must also run apart (affinity group n)",
        ),
        (
            (*TWO, *PAIR, group("g", TOGETHER, "a b"), group("n", APART, "a b")),
            "a and b must also run together (affinity group g)",
        ),
        (
            (
                host("h1"), host("h2", status="non_responsive"), vm("a", "h1"), vm("b", "h2"),
                group("g", TOGETHER, "a b"),
            ),
            "b stays where it is: its host has status non_responsive",
        ),
        (
            (*TWO, vm("a", "h1", status="paused"), vm("b", "h1", hosted_engine=True), RIVALS),
            "b stays where it is: it is the hosted engine",
        ),
        (
            (
                *TWO, vm("a", "h1", migratable=False, pinned_hosts=("h1",)), vm("b", "h1", migratable=False),
                RIVALS,
            ),
            "a stays where it is: it may not be migrated automatically (pinned, or only its user may)",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_repaired_says_why(parts: tuple[Part, ...], reason: str) -> None:
    plan = planned(*parts)
    assert (plan.proven, plan.steps) == (True, ())
    assert reason in why(plan)


@pytest.mark.parametrize(("first", "second"), [(5.0, 1.0), (1.0, 1.0)], ids=["more", "as much"])
def test_a_soft_rule_is_not_said_to_be_beyond_repair_where_another_counts_no_less(
    first: float, second: float
) -> None:
    """Each of the two could be repaired by one legal migration."""
    near = group("g", SOFT_TOGETHER, "a b", priority=first)
    wished = group("n", SOFT_APART, "a b", priority=second)
    plan = make_plan(snapshot(*TWO, *PAIR, near, wished), CLUSTER, options=ALL)
    assert (plan.proven, plan.steps, [one.groups for one in plan.remaining]) == (True, (), [("n",)])
    assert why(plan) == "a and b must also run together, which counts no less (affinity group g)"


def test_a_rule_that_remains_violated_itself_is_no_reason_for_another_to_be_so() -> None:
    """That b has to leave h1, and cannot, does not keep a there: a and c have no room to change places."""
    full = host("h1", free_mb=0), host("h2", free_mb=0), vm("a", "h1"), vm("c", "h2")
    rules = group("off", vms="b", hosts_rule=APART, hosts="h1"), RIVALS, group("n", APART, "a c")
    plan = planned(*full, vm("b", "h1", migratable=False), *rules)
    reasons = {one.groups: [obstacle.kind for obstacle in one.obstacles] for one in plan.remaining}
    assert reasons["g",][:2] == [ObstacleKind.NO_SEQUENCE, ObstacleKind.STAYS]


def test_a_vm_that_is_frozen_stays_and_the_reason_is_reported() -> None:
    plan = planned(*TWO, vm("a", "h1"), vm("b", "h1", migratable=False), RIVALS, frozen={"a": "it rests"})
    assert plan.steps == ()
    assert "a stays where it is: it rests" in why(plan)


def test_the_rest_of_a_plan_holds_only_while_nothing_else_changes() -> None:
    state = snapshot(*HOSTS, *PAIR, vm("c", "h1"), group("g", APART, "a b c"))
    plan = make_plan(state, CLUSTER)
    assert misfit(state, plan) is None
    full = msgspec.structs.replace(state, hosts=(HOSTS[0], host("h2", free_mb=1), HOSTS[2]))
    assert misfit(full, plan) is not None
    also_violated: Snapshot = msgspec.structs.replace(
        state,
        vms=(*state.vms, vm("x", "h2"), vm("y", "h2")),
        affinity_groups=(*state.affinity_groups, group("n", APART, "x y")),
    )
    assert misfit(also_violated, plan) is not None
    # What it repairs is gone, or repaired by others.
    assert misfit(msgspec.structs.replace(state, affinity_groups=()), plan) is not None
    pair = make_plan(snapshot(*HOSTS, *PAIR, RIVALS), CLUSTER)
    (moved,) = pair.steps[0].vms
    others = (vm(one.id, "h1" if one.id == moved else "h3") for one in PAIR)
    assert misfit(snapshot(*HOSTS, *others, RIVALS), pair) is not None


HEADROOM = PlanOptions(repair=ALL.repair, memory_headroom=0.1, cpu_headroom=0.1)


@EACH
def test_headroom_is_kept_where_another_host_will_do(name: StrategyName) -> None:
    """The first of the hosts is the emptiest by its share, and has too little left above the headroom."""
    state = snapshot(
        host("h1"), host("small", memory_mb=4096, free_mb=2048, cpu_percent=0),
        host("busy", free_mb=20000, cpu_percent=85), host("full", free_mb=14000, cpu_percent=20),
        *(vm(one, "h1", needs_mb=2048, vcpus=2, usage_cpu_percent=80) for one in "ab"), RIVALS,
    )  # fmt: skip
    plan = make_plan(state, CLUSTER, options=HEADROOM, strategy=strategy(name))
    assert ([step.target for step in plan.steps], plan.crowded) == (["full"], ())


@EACH
@pytest.mark.parametrize(
    "full", [host("h2", cpu_percent=88), host("h2", free_mb=2048)], ids=["CPU", "memory"]
)
def test_headroom_is_given_up_for_a_hard_rule_alone_and_said(name: StrategyName, full: Host) -> None:
    vms = vm("a", "h1", vcpus=4, usage_cpu_percent=80), vm("b", "h1", migratable=False)

    def end(wanted: AffinityRule) -> tuple[list[str], tuple[str, ...]]:
        state = snapshot(host("h1"), full, *vms, group("g", wanted, "a b"))
        plan = make_plan(state, CLUSTER, options=HEADROOM, strategy=strategy(name))
        assert "no sequence of legal migrations repairs it" not in why(plan)
        return moves(plan), plan.crowded

    assert end(APART) == (["a to h2"], ("h2",))
    assert end(SOFT_APART) == ([], ())


def test_the_ha_reservation_is_named_where_rules_contradict_each_other_as_well() -> None:
    """Of the two rules one could be satisfied, if not for that; of the VMs one can restart in any case."""
    vms = vm("a", "h1", ha=True), vm("b", "h1", ha=True)
    both = group("g", APART, "a b", hosts_rule=TOGETHER, hosts="h2")
    plan = planned(cluster(ha_reservation=True), *TWO, *vms, both)
    assert plan.steps == ()
    assert all(one.obstacles[0].kind is ObstacleKind.RESERVATION for one in plan.remaining)


def reserving(free_mb_on_h3: int, *parts: Part) -> Snapshot:
    """On h2 `a` would take the room that big needs there if h3 failed."""
    return snapshot(
        cluster(ha_reservation=True), host("h1", memory_mb=20480, free_mb=0),
        host("h2", memory_mb=16384, free_mb=10240), host("h3", memory_mb=16384, free_mb=free_mb_on_h3),
        vm("big", "h3", needs_mb=6144, guaranteed_mb=6144, ha=True, migratable=False),
        vm("a", "h1", needs_mb=5120), *parts,
        vm("b", "h1", needs_mb=12288, guaranteed_mb=0, usage_mem_percent=0, migratable=False), RIVALS,
    )  # fmt: skip


def test_ha_reservation_is_not_made_worse() -> None:
    """On h2, which is the emptier one."""
    state = reserving(9216)
    assert moves(make_plan(state, CLUSTER, options=ALL)) == ["a to h3"]
    unreserved = msgspec.structs.replace(state, clusters=(cluster(),))
    assert moves(make_plan(unreserved, CLUSTER, options=ALL)) == ["a to h2"]


@pytest.mark.parametrize("guaranteed_mb", [6144, 0])
@EACH
def test_what_is_left_out_for_the_ha_reservation_is_said(name: StrategyName, guaranteed_mb: int) -> None:
    """The one other host is the one that big would start on if h2 failed, with all of its memory."""
    state = snapshot(
        cluster(ha_reservation=True),
        host("h1", memory_mb=16384, free_mb=8192), host("h2", memory_mb=16384, free_mb=0),
        vm("big", "h2", needs_mb=6144, guaranteed_mb=guaranteed_mb, ha=True, migratable=False),
        vm("a", "h2", needs_mb=5120), vm("b", "h2", needs_mb=5120, migratable=False), RIVALS,
    )  # fmt: skip
    plan = make_plan(state, CLUSTER, strategy=strategy(name))
    assert not plan.steps
    (left,) = plan.remaining
    found = left.obstacles[0]
    assert found == Obstacle(
        ObstacleKind.RESERVATION, vms=("a",), hosts=("h2",), unplaced=("big",), needed=1, available=0
    )
    assert obstacle_text(found, state).startswith(
        "migrations of a were left out: if h2 failed after them, big would not restart (over all failures 1"
    )
    unreserved = msgspec.structs.replace(state, clusters=(cluster(),))
    assert moves(make_plan(unreserved, CLUSTER, options=ALL)) == ["a to h1"]


def test_a_host_that_may_not_fail_alone_any_more_is_worse_than_two_that_may_not_together() -> None:
    two, alone = [Loss(("h1", "h2"), ("a", "b"))], [Loss(("h2",), ("a",))]
    assert remaining._compared(two, alone) == Harm(("h2",), (), ("a",), then=1, now=0)
    assert remaining._compared(alone, two) is None


def test_a_negative_group_with_more_vms_than_hosts_says_so_however_large_it_is() -> None:
    names = [f"v{number:03}" for number in range(300)]
    state = snapshot(
        *(host(f"h{number:03}") for number in range(200)),
        *(vm(name, f"h{number % 200:03}") for number, name in enumerate(names)),
        group("g", APART, " ".join(names)),
    )
    (left,) = remains(End(state, pose(state, CLUSTER), (), proven=False), NEVER)
    assert left.obstacles[0] == Obstacle(ObstacleKind.HOST_EACH, needed=300, available=200, count=300)


def test_hosts_are_asked_only_while_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large cluster each question takes long, and one that is accepted reports nothing."""
    state = snapshot(*(host(f"h{number}") for number in range(1, 7)), *PAIR, RIVALS)
    asked: list[object] = []
    monkeypatch.setattr(remaining, "_why_not", lambda *question: iter(asked.append(question) or ()))
    deadline = Deadline(lambda: 1.0 if len(asked) < 2 else 0.0)
    (left,) = remains(End(state, pose(state, CLUSTER), (), proven=False), deadline)
    assert (len(asked), left.obstacles) == (2, (Obstacle(ObstacleKind.NOT_FOUND),))


def test_a_plan_that_does_harm_leaves_time_for_another_and_is_carried_out_as_far_as_it_does_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a large cluster another one may come to less in its time than these steps."""
    state = snapshot(
        cluster(ha_reservation=True),
        host("h1", memory_mb=16384, free_mb=8192), host("h2", memory_mb=16384, free_mb=0),
        host("h3", memory_mb=4096, free_mb=2048),
        vm("big", "h2", needs_mb=6144, guaranteed_mb=6144, ha=True, migratable=False),
        vm("a", "h2", needs_mb=5120), vm("b", "h2", needs_mb=5120, migratable=False), RIVALS,
        vm("C", "h1"), vm("D", "h1", migratable=False), group("f", APART, "C D"),
    )  # fmt: skip
    seconds: list[float] = []

    def solved(problem: Problem, chosen: Strategy, deadline: Deadline) -> Iterator[Solution]:
        seconds.append(deadline.seconds_left())
        yield from (
            solve(problem, chosen, deadline)
            if len(seconds) == 1
            else [Solution((), proven=False, at_least=0)]
        )

    monkeypatch.setattr(planner, "solve", solved)
    plan = make_plan(state, CLUSTER, deadline=Deadline(lambda: 10.0))
    assert seconds[0] == pytest.approx(4.5)
    assert moves(plan) == ["C to h3"]
    assert [one.obstacles[0].kind for one in plan.remaining] == [ObstacleKind.RESERVATION]
    assert not plan.proven


def test_where_rules_cost_a_reservation_another_way_without_harm_may_take_more_migrations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On h3 there is room once c has left it."""
    state = reserving(4096, vm("c", "h3", needs_mb=2048))
    monkeypatch.setattr(planner, "avoidable_harm", lambda *question: None)
    assert sorted(moves(make_plan(state, CLUSTER, options=ALL))) == ["a to h3", "c to h2"]
