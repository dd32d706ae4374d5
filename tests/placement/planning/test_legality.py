"""No plan holds a step that a unit of the policy, or the engine's own filters, would refuse."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.answers.plans import plan_record
from ovirt_placement.model import Cluster, SchedulingPolicy, Snapshot
from ovirt_placement.planning import steps as following
from ovirt_placement.planning.plan import Plan, Step
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import legal
from ovirt_placement.planning.requests import make_room
from ovirt_placement.planning.steps import apply
from ovirt_placement.rules import catalogue
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind, Request, Verdict
from tests.builders import APART, CLUSTER, TOGETHER, cluster, group, host, label, pending, snapshot, vm
from tests.examples import examples
from tests.placement.planning.plans import hating
from tests.placement.rules.strategies import HOSTS, snapshots

THREE_HOSTS = (host("h1"), host("h2", free_mb=20000), host("h3", free_mb=10000))
CROWDED = (vm("a", "h1"), vm("b", "h1", migratable=False), group("g", APART, "a b"))


def targets(plan: Plan) -> list[str]:
    return [step.target for step in plan.steps]


def test_hosts_that_placement_keys_refuse_are_no_targets_where_the_policy_has_their_unit() -> None:
    """A plan is not called proven where other VMs sway a filter."""
    plan = make_plan(hating("h2", *CROWDED), CLUSTER)
    assert (targets(plan), plan.refused, plan.proven) == (["h3"], (), False)
    assert targets(make_plan(hating("h2", *CROWDED, policy=cluster()), CLUSTER)) == ["h2"]


def test_the_engine_refuses_a_vm_of_a_group_that_must_be_on_hosts_and_lists_none() -> None:
    state = snapshot(*THREE_HOSTS, *CROWDED, group("nowhere", vms="a", hosts_rule=TOGETHER))
    plan = make_plan(state, CLUSTER)
    assert plan.steps == ()
    assert "the engine does not allow VM a on this host" in "\n".join(
        plan_record(plan, state).remaining[0].because
    )


def test_the_engine_refuses_a_vm_whose_peer_is_on_its_way_in_another_cluster() -> None:
    """Once that one runs there the engine does not see it any more."""
    parts = (
        cluster(), cluster("other"), *THREE_HOSTS, host("far", cluster="other"), *CROWDED,
        vm("x", "far", cluster="other"), label("l", "a x"), group("with", TOGETHER, vm_labels=("l",)),
    )  # fmt: skip
    assert make_plan(snapshot(*parts, pending("x", "far")), CLUSTER).steps == ()
    assert make_plan(snapshot(*parts), CLUSTER).steps != ()


@pytest.mark.parametrize(("ready", "proven"), [({}, True), ({2048: 2048}, False)], ids=["none", "ready"])
def test_nothing_is_proven_where_huge_pages_are_ready_for_vms(ready: dict[int, int], proven: bool) -> None:
    """Then a VM needs less of what h2 has to hand out, and no plan reckons with that."""
    huge = vm("a", "h1", memory_mb=4096, custom_properties={"hugepages": "2048"})
    parts = host("h1"), host("h2", free_mb=1024, free_huge_pages=ready), huge, vm("b", "h1", migratable=False)
    plan = make_plan(snapshot(*parts, group("g", APART, "a b")), CLUSTER)
    assert (plan.steps, plan.proven, plan.at_least) == ((), proven, 0)


REFUSES = ReasonKind("refuses", "does not like VM {vm} there", veto=True)


def third_party(refuses: Callable[[Snapshot, str], bool]) -> Rule:
    """A filter of which the search knows nothing beforehand but its answers at the start."""

    def judge(state: Snapshot, request: Request) -> tuple[Verdict, ...]:
        def reasons(place: str) -> tuple[Reason, ...]:
            return (Reason(REFUSES, vm=request.vms[0]),) if refuses(state, place) else ()

        return tuple(Verdict.of_reasons(place, reasons(place)) for place in request.candidate_hosts)

    return Rule(name="ThirdParty", kind=UnitKind.FILTER, ours=False, filter=judge)


def taken(state: Snapshot, place: str) -> bool:
    """No host takes two VMs, whatever they are."""
    return place != "h1" and bool(state.vms_of_host.get(place))


def test_a_step_that_a_rule_refuses_only_later_is_dropped_and_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalogue, "RULES", (*catalogue.RULES, third_party(taken)))
    pairs = [group("g1", APART, "a fixed"), group("g2", APART, "b fixed")]
    state = snapshot(*THREE_HOSTS, vm("a", "h1"), vm("b", "h1"), vm("fixed", "h1", migratable=False), *pairs)
    plan = make_plan(state, CLUSTER)
    assert sorted(targets(plan)) == ["h2", "h3"]
    assert not plan.proven
    (dropped,) = plan.refused
    assert dropped.step.target == "h2"
    (reported,) = plan_record(plan, state).refused
    assert reported.because == (f"ThirdParty: does not like VM {dropped.step.vms[0]} there",)


def test_a_cluster_whose_every_step_is_refused_ends_with_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "legal", lambda state, step: False)
    plan = make_plan(snapshot(*THREE_HOSTS, *CROWDED), CLUSTER)
    assert (plan.steps, {dropped.step.target for dropped in plan.refused}) == ((), {"h2", "h3"})


@settings(max_examples=examples(40))
@given(snapshots(st.sampled_from([TOGETHER, APART])), st.sampled_from([None, *HOSTS]), st.booleans())
def test_every_step_passes_every_filter_in_the_state_before_it(
    state: Snapshot, hated: str | None, by_keys: bool
) -> None:
    policy = SchedulingPolicy(filters=("PlacementKeyFilter",) if by_keys else ())
    clusters = tuple(replace(one, scheduling_policy=policy) for one in state.clusters)
    state = replace(state, clusters=clusters)
    if hated is not None:
        state = replace(state, placement_keys=hating(hated).placement_keys)
    plan = make_plan(state, CLUSTER)
    for step in plan.steps:
        assert legal(state, step)
        request = Request(step.vms, (step.target,))
        # The reserve is looked at where a policy has its unit (`ADMITTING`); here rules may cost some of it.
        asked = (*catalogue.RULES, *catalogue.ENGINES_OWN)
        for rule in (one for one in asked if one.name != "HaAdmissionFilter"):
            if rule.filter is not None and (by_keys or not rule.on_request):
                assert all(verdict.accepted for verdict in rule.filter(state, request)), rule.name
        state = apply(state, step)


ADMITTING = cluster(ha_reservation=True, scheduling_policy=SchedulingPolicy(filters=("HaAdmissionFilter",)))


def reserved(policy: Cluster) -> Snapshot:
    """Two that share h1 must part; db on h1 can restart on h2 alone, where one would be in its way."""
    return snapshot(
        policy, host("h1", free_mb=9000), host("h2", free_mb=4000), host("h3", free_mb=3000),
        vm("db", "h1", ha=True, needs_mb=4000), vm("a", "h1", needs_mb=2000), vm("b", "h1", migratable=False),
        group("g", APART, "a b"),
    )  # fmt: skip


def test_no_step_takes_the_room_of_a_reservation() -> None:
    state = reserved(ADMITTING)
    to_h2 = Step(vms=("a",), sources=("h1",), target="h2", groups=(), repairs=())
    assert not legal(state, to_h2)
    assert legal(state, replace(to_h2, target="h3"))
    assert legal(reserved(cluster(ha_reservation=True)), to_h2)
    plan = make_plan(state, CLUSTER)
    assert targets(plan) == ["h3"]


def test_what_the_reservation_refuses_stays_and_is_reported() -> None:
    state = reserved(ADMITTING)
    full = replace(state, hosts=(*state.hosts[:2], replace(state.hosts[2], free_mb=100)))
    plan = make_plan(full, CLUSTER)
    assert (plan.steps, [rule.groups for rule in plan.remaining]) == ((), [("g",)])
    because = [why for rule in plan_record(plan, full).remaining for why in rule.because]
    assert any("db could no longer restart if h1 failed" in why for why in because), because


def test_room_is_made_for_a_start_that_the_reservation_lets_through() -> None:
    """new fits on h2 at once, but there it would take what db needs; h3 has it once c has left."""
    state = snapshot(
        ADMITTING, host("h1", free_mb=0), host("h2", free_mb=6000), host("h3", free_mb=2500),
        vm("db", "h1", ha=True, needs_mb=4000), vm("c", "h3", needs_mb=1000), vm("new", needs_mb=3000),
    )  # fmt: skip
    room = make_room(state, "new")
    assert (room.host, [(step.vms, step.target) for step in room.plan.steps]) == ("h3", [(("c",), "h2")])
    off = replace(state, clusters=(cluster(ha_reservation=True),))
    assert (make_room(off, "new").host, make_room(off, "new").plan.steps) == ("h2", ())


@pytest.mark.parametrize("status", ["up", "migrating", "paused", "suspended", "down", "not_responding"])
@pytest.mark.parametrize("is_migratable", [True, False])
def test_a_step_moves_what_runs_and_is_not_on_its_way(status: str, is_migratable: bool) -> None:
    state = snapshot(*THREE_HOSTS, vm("a", "h1", status=status, migratable=is_migratable))
    step = Step(vms=("a",), sources=("h1",), target="h2", groups=(), repairs=())
    assert legal(state, step) == (status == "up" and is_migratable)
