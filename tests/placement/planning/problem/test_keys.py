"""VMs whose placement keys refuse the host that they run on: moved only where the configuration says so."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from ovirt_placement.answers.plans.plan import reason, remaining_record
from ovirt_placement.answers.plans.text import rule_text
from ovirt_placement.model import PlacementKey, SchedulingPolicy, Snapshot
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions
from tests.builders import CLUSTER, TOGETHER, Part, cluster, group, host, snapshot, vm

BY_KEYS = cluster(scheduling_policy=SchedulingPolicy(filters=("PlacementKeyFilter",)))
WITH_KEYS = PlanOptions(keys=True)


def hating(hosts: Collection[str], *parts: Part, policy: Part = BY_KEYS) -> Snapshot:
    """Where the operator keeps all VMs off some of three hosts, by keys."""
    state = snapshot(policy, host("h1"), host("h2", free_mb=20000), host("h3", free_mb=10000), *parts)
    on_cluster = PlacementKey(
        level="cluster", resource=CLUSTER, key_class="system", name="SAN", value=1.0, weight=-100.0
    )
    on_hosts = (
        PlacementKey(level="node", resource=one, key_class="system", name="SAN", value=float(one in hosts))
        for one in ("h1", "h2", "h3")
    )
    return replace(state, placement_keys=(on_cluster, *on_hosts))


def test_a_vm_leaves_a_host_that_its_keys_refuse() -> None:
    state = hating(["h1", "h2"], vm("a", "h1"), vm("b", "h3"))
    plan = make_plan(state, CLUSTER, options=WITH_KEYS)
    assert [(step.vms, step.target) for step in plan.steps] == [(("a",), "h3")]
    assert plan.remaining == ()
    assert reason(plan.steps[0], state) == "to a host that its placement keys accept"


def test_nothing_leaves_where_nobody_asks_for_it_or_the_unit_is_not_in_force() -> None:
    parts = (vm("a", "h1"), vm("b", "h3"))
    assert make_plan(hating(["h1"], *parts), CLUSTER).steps == ()
    assert make_plan(hating(["h1"], *parts, policy=cluster()), CLUSTER, options=WITH_KEYS).steps == ()


def test_a_vm_that_may_not_be_migrated_breaks_nothing() -> None:
    plan = make_plan(hating(["h1"], vm("a", "h1", migratable=False)), CLUSTER, options=WITH_KEYS)
    assert (plan.steps, plan.remaining) == ((), ())


def test_what_no_host_is_accepted_for_stays_and_is_reported() -> None:
    state = hating(["h1", "h2", "h3"], vm("a", "h1"))
    plan = make_plan(state, CLUSTER, options=WITH_KEYS)
    assert plan.steps == ()
    (left,) = plan.remaining
    assert (left.family, left.vms, left.hard) == ("placement_keys", ("a",), True)
    assert left.obstacles
    assert (
        rule_text(remaining_record(left, state))
        == "placement keys, hard: on a host that its placement keys accept"
    )


def test_a_hard_group_keeps_a_vm_where_its_keys_refuse_it_unless_all_can_go() -> None:
    pair = (vm("a", "h1"), vm("b", "h1"), group("with", TOGETHER, "a b"))
    plan = make_plan(hating(["h1"], *pair), CLUSTER, options=WITH_KEYS)
    assert [set(step.vms) for step in plan.steps] == [{"a", "b"}]
    kept = group("on", vms="b", hosts_rule=TOGETHER, hosts="h1")
    assert make_plan(hating(["h1"], *pair, kept), CLUSTER, options=WITH_KEYS).steps == ()
