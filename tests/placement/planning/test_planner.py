"""What a plan says and why, case by case; that plans are the best is tested against brute force next door."""

import msgspec
import pytest

from ovirt_placement.answers.plans import obstacle_text
from ovirt_placement.model import AffinityRule, Snapshot
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from ovirt_placement.planning.steps import misfit
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
    snapshot,
    vm,
)

HOSTS = (host("h1"), host("h2"), host("h3"))


def planned(*parts: Part, **options: dict[str, str]) -> Plan:
    return make_plan(snapshot(*parts), CLUSTER, **options)


def moves(plan: Plan) -> list[str]:
    return [f"{' '.join(step.vms)} to {step.target}" for step in plan.steps]


def why(plan: Plan) -> str:
    found = (one for rule in plan.remaining for one in rule.obstacles)
    return "\n".join(obstacle_text(one, snapshot()) for one in found)


def test_the_minority_joins_the_majority() -> None:
    plan = planned(*HOSTS, vm("a", "h2"), vm("b", "h2"), vm("c", "h1"), group("g", TOGETHER, "a b c"))
    assert moves(plan) == ["c to h2"]
    assert plan.steps[0].repairs == ("g",)


def test_groups_that_share_a_vm_that_is_down_gather_as_one() -> None:
    plan = planned(
        *HOSTS,
        vm("a", "h1"),
        vm("b"),
        vm("c", "h2"),
        group("g1", TOGETHER, "a b"),
        group("g2", TOGETHER, "b c"),
    )
    assert moves(plan) in (["a to h2"], ["c to h1"])
    assert plan.steps[0].repairs == ("g1", "g2")


def test_the_cheapest_vm_leaves_for_the_roomiest_host_that_is_no_failover_host() -> None:
    hosts = (host("h1"), host("h2", free_mb=9000), host("h3", free_mb=20000), host("h4", failover=True))
    plan = planned(*hosts, vm("big", "h1", needs_mb=8192), vm("small", "h1"), group("g", APART, "big small"))
    assert moves(plan) == ["small to h3"]


def test_the_pinned_member_stays_and_the_other_leaves() -> None:
    plan = planned(*HOSTS, vm("a", "h1", migratable=False), vm("b", "h1"), group("g", APART, "a b"))
    assert moves(plan) == ["b to h2"]


def test_a_vm_with_a_list_of_hosts_is_sent_to_none_other_though_the_engine_would_let_it() -> None:
    listed = vm("a", "h1", pinned_hosts=("h1", "h3"))
    plan = planned(*HOSTS, listed, vm("b", "h1", migratable=False), group("g", APART, "a b"))
    assert moves(plan) == ["a to h3"]


def test_a_member_far_from_its_peers_steps_over_a_rival_that_leaves_first() -> None:
    plan = planned(
        host("h1"), host("h2"), host("h3"),
        vm("a1", "h1"), vm("a2", "h1", migratable=False), vm("a3", "h2"), vm("rival", "h1"),
        group("all", TOGETHER, "a1 a2 a3"), group("apart", APART, "a3 rival"),
    )  # fmt: skip
    assert len(moves(plan)) == 2
    assert moves(plan)[0].startswith("rival to")
    assert plan.steps[0].groups == ()


def test_one_makes_room_for_another_that_makes_room() -> None:
    plan = planned(
        host("h1", free_mb=0), host("h2", free_mb=0), host("h3", free_mb=0), host("h4", free_mb=2048),
        vm("stray", "h1", needs_mb=2048), vm("peer", "h2", migratable=False),
        vm("second", "h2", needs_mb=2048), vm("first", "h3", needs_mb=2048),
        group("g", TOGETHER, "stray peer"),
        group("second", vms="second", hosts_rule=TOGETHER, hosts="h2 h3"),
    )  # fmt: skip
    assert moves(plan) == ["first to h4", "second to h3", "stray to h2"]
    assert [step.groups for step in plan.steps] == [(), (), ("g",)]
    assert plan.proven


def test_a_host_rule_decides_where_a_group_gathers() -> None:
    plan = planned(
        *HOSTS, vm("a", "h1"), vm("b", "h2"), group("g", TOGETHER, "a b"),
        group("near", vms="b", hosts_rule=TOGETHER, hosts="h2 h3"),
    )  # fmt: skip
    assert moves(plan) == ["a to h2"]


@pytest.mark.parametrize("rule", [SOFT_APART, SOFT_TOGETHER])
def test_soft_groups_are_repaired_where_that_is_asked_for_and_reported_in_any_case(
    rule: AffinityRule,
) -> None:
    state = snapshot(
        *HOSTS, vm("a", "h1"), vm("b", "h1" if rule is SOFT_APART else "h2"), group("g", rule, "a b")
    )
    reported = make_plan(state, CLUSTER)
    assert reported.steps == ()
    assert [(rule.groups, rule.hard, rule.obstacles) for rule in reported.remaining] == [(("g",), False, ())]
    repaired = make_plan(state, CLUSTER, options=PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT})))
    assert repaired.migrations == 1
    assert repaired.remaining == ()


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


def test_no_vm_is_sent_towards_a_host_that_does_not_answer() -> None:
    plan = planned(
        host("h1"),
        host("h2", status="non_responsive"),
        vm("a", "h1"),
        vm("b", "h2"),
        group("g", TOGETHER, "a b"),
    )
    assert plan.steps == ()
    assert "b stays where it is: its host is non_responsive" in why(plan)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (
            (host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), vm("c", "h2"), group("g", APART, "a b c")),
            "its 3 running VMs need a host each, and only 2 can have one",
        ),
        (
            (host("h1"), host("h2", free_mb=1), vm("a", "h1"), vm("b", "h1"), group("g", APART, "a b")),
            "a to h2: 1024 MiB needed, 1 MiB free",
        ),
        (
            (
                host("h1"), host("h2", status="maintenance"), vm("a", "h1"), vm("b", "h1"),
                group("g", APART, "a b"),
            ),
            "a to h2: the host is maintenance",
        ),
        (
            (
                host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", APART, "a b"),
                group("near", vms="a b", hosts_rule=TOGETHER, hosts="h1"),
            ),
            "a to h2: VM a may only run on the hosts of affinity group near",
        ),
        (
            (
                host("h1"), host("h2"), vm("a", "h1"), vm("b", "h2"),
                group("g", TOGETHER, "a b"), group("n", APART, "a b"),
            ),
            "a and b must also run apart (affinity group n)",
        ),
        (
            (
                host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"),
                group("g", TOGETHER, "a b"), group("n", APART, "a b"),
            ),
            "a and b must also run together (affinity group g)",
        ),
        (
            (
                host("h1"), host("h2"), vm("a", "h1", status="paused"), vm("b", "h1", hosted_engine=True),
                group("g", APART, "a b"),
            ),
            "b stays where it is: it is the hosted engine",
        ),
        (
            (
                host("h1"), host("h2"), vm("a", "h1", migratable=False, pinned_hosts=("h1",)),
                vm("b", "h1", migratable=False), group("g", APART, "a b"),
            ),
            "a stays where it is: it may not be migrated automatically (pinned, or only its user may)",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_repaired_says_why(parts: tuple[Part, ...], reason: str) -> None:
    plan = planned(*parts)
    assert plan.proven
    assert plan.steps == ()
    assert reason in why(plan)


def test_a_vm_that_is_frozen_stays_and_the_reason_is_reported() -> None:
    plan = planned(
        *HOSTS,
        vm("a", "h1"),
        vm("b", "h1", migratable=False),
        group("g", APART, "a b"),
        frozen={"a": "it rests"},
    )
    assert plan.steps == ()
    assert "a stays where it is: it rests" in why(plan)


def test_the_rest_of_a_plan_holds_only_while_nothing_else_changes() -> None:
    state = snapshot(*HOSTS, vm("a", "h1"), vm("b", "h1"), vm("c", "h1"), group("g", APART, "a b c"))
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
