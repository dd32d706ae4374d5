"""Where VMs may go in a problem, and what a placement keeps up to date as they move: as counted again."""

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ovirt_placement.answers.plans import reason, remaining_record
from ovirt_placement.answers.plans.text import rule_text
from ovirt_placement.model import AffinityRule, PlacementRule, Snapshot
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, filters_of, pose, request_for
from ovirt_placement.planning.problem.ends import score
from ovirt_placement.planning.problem.placement import ProblemPlacement
from tests.builders import CLUSTER, TOGETHER, cluster, group, host, label, needed_mb, snapshot, vm
from tests.examples import examples
from tests.placement.planning.brute_force import Ends
from tests.placement.planning.clusters import drawn
from tests.placement.planning.plans import hating, moves
from tests.placement.rules.placement_rules.drawn import placement_rules
from tests.placement.rules.placement_rules.oracle import concerns, lets_step, running, satisfied

HOSTS = ("h1", "h2", "h3", "h4")
VMS = ("a", "b", "c", "d")
MOVES = st.lists(st.tuples(st.sampled_from(VMS), st.sampled_from(HOSTS)), max_size=4)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(placement_rules("r", VMS, HOSTS), st.tuples(*[st.sampled_from(HOSTS)] * 4), MOVES)
def test_after_any_moves_a_count_agrees_with_the_definition(
    rule: PlacementRule, at: tuple[str, ...], moves: list[tuple[str, str]]
) -> None:
    vms = (
        vm(name, there, vcpus=1 + number % 2)
        for number, (name, there) in enumerate(zip(VMS, at, strict=True))
    )
    state = snapshot(*map(host, HOSTS), *vms, rule)
    problem = pose(state, CLUSTER)
    if not problem.goals:
        return
    (goal,) = problem.goals
    placement, where = ProblemPlacement(problem), running(state)
    for name, target in moves:
        placement.move((name,), target)
        where[name] = target
    assert placement.violated(goal) is not satisfied(rule, state, where)
    if satisfied(rule, state, running(state)) and not satisfied(rule, state, where):
        return  # no legal migrations lead there
    for name in VMS:
        for target in HOSTS:
            if concerns(rule, state, name) and where[name] != target:
                assert placement.admits(goal, name, target) is lets_step(rule, state, where, name, target)


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, 10**9))
def test_violations_and_room_are_right_after_any_moves(seed: int) -> None:
    cluster, dice = drawn(seed, hosts=5, vms=8, groups=6), random.Random(seed)
    problem, ends = pose(cluster, CLUSTER, options=PlanOptions(repair=frozenset(Repair))), Ends(cluster)
    placement = ProblemPlacement(problem)
    for _ in range(12):
        placement.move((dice.choice(sorted(problem.where)),), dice.choice(problem.hosts))
        end = ends.after(placement.moved)
        hard, soft, migrations = ends.value(end)
        found = score(placement)
        assert (found.hard, found.soft, found.migrations) == (hard, soft, migrations)
        assert found.excess == ends.pairs(end)
        for known in cluster.hosts:
            taken = sum(needed_mb(one) for one, now in zip(ends.vms, end, strict=True) if now == known.id)
            before = sum(needed_mb(one) for one in ends.vms if one.host == known.id)
            assert placement.free_mb(known.id) == known.free_mb + before - taken


def test_headroom_that_was_gone_before_is_not_taken_by_who_comes() -> None:
    cluster = snapshot(host("h1"), host("h2", memory_mb=10240, free_mb=512), vm("a", "h1", needs_mb=256))
    placement = ProblemPlacement(pose(cluster, CLUSTER, options=PlanOptions(memory_headroom=0.1)))
    placement.put({"a": "h2"})
    assert score(placement).headroom_deficit_mb == 256


WITH_KEYS = PlanOptions(keys=True)


def test_a_vm_leaves_a_host_that_its_keys_refuse() -> None:
    state = hating("h1 h2", vm("a", "h1"), vm("b", "h3"))
    plan = make_plan(state, CLUSTER, options=WITH_KEYS)
    assert (moves(plan), plan.remaining) == (["a to h3"], ())
    assert reason(plan.steps[0], state) == "to a host that its placement keys accept"


def test_nothing_leaves_where_nobody_asks_for_it_or_the_unit_is_not_in_force() -> None:
    parts = (vm("a", "h1"), vm("b", "h3"))
    assert make_plan(hating("h1", *parts), CLUSTER).steps == ()
    assert make_plan(hating("h1", *parts, policy=cluster()), CLUSTER, options=WITH_KEYS).steps == ()


def test_a_vm_that_may_not_be_migrated_breaks_nothing() -> None:
    plan = make_plan(hating("h1", vm("a", "h1", migratable=False)), CLUSTER, options=WITH_KEYS)
    assert (plan.steps, plan.remaining) == ((), ())


def test_what_no_host_is_accepted_for_stays_and_is_reported() -> None:
    state = hating("h1 h2 h3", vm("a", "h1"))
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
    plan = make_plan(hating("h1", *pair), CLUSTER, options=WITH_KEYS)
    assert [set(step.vms) for step in plan.steps] == [{"a", "b"}]
    kept = group("on", vms="b", hosts_rule=TOGETHER, hosts="h1")
    assert make_plan(hating("h1", *pair, kept), CLUSTER, options=WITH_KEYS).steps == ()


def restricted(seed: int) -> Snapshot:
    """VMs with few and many CPUs, some pinned, under host rules and legacy labels."""
    dice = random.Random(seed)
    hosts = [f"h{number}" for number in range(5)]
    vms = [f"v{number}" for number in range(12)]
    return snapshot(
        cluster(compatibility=dice.choice(("4.3", "4.7"))),
        *(
            host(name, cores=dice.choice((2, 4, 16)), status=dice.choice(("up", "up", "maintenance")))
            for name in hosts
        ),
        *(
            vm(
                name,
                dice.choice(hosts),
                vcpus=dice.choice((1, 3, 8)),
                migratable=dice.random() < 0.8,
                pinned_hosts=tuple(dice.sample(hosts, dice.choice((0, 0, 2)))),
            )
            for name in vms
        ),
        *(
            group(
                f"g{number}",
                vms=" ".join(dice.sample(vms, 4)),
                hosts_rule=AffinityRule(
                    enabled=True, positive=dice.random() < 0.5, enforcing=dice.random() < 0.7
                ),
                hosts=" ".join(dice.sample(hosts, dice.randint(0, 3))),
            )
            for number in range(4)
        ),
        label("l", " ".join(dice.sample(vms, 3)), " ".join(dice.sample(hosts, 2)), implicit=True),
    )


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 10**9))
def test_fixed_filters_say_the_same_of_vms_that_are_alike(seed: int) -> None:
    state = restricted(seed)
    hosts = tuple(known.id for known in state.hosts)
    for rule in filters_of(state, CLUSTER):
        if rule.depends_on.alike is None:
            continue
        answers: dict[object, set[tuple[bool, ...]]] = {}
        for known in state.vms:
            assert rule.filter is not None
            verdicts = rule.filter(state, request_for(state, CLUSTER, (known.id,), hosts))
            answers.setdefault(rule.depends_on.alike(state, known.id), set()).add(
                tuple(verdict.accepted for verdict in verdicts)
            )
        assert all(len(found) == 1 for found in answers.values())


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(0, 10**9))
def test_targets_are_what_every_fixed_filter_lets_pass(seed: int) -> None:
    state = restricted(seed)
    targets = pose(state, CLUSTER, refused=[("v0", "h0"), ("v1", "h1")]).targets
    fixed = [rule for rule in filters_of(state, CLUSTER) if rule.depends_on.fixed]
    up = [known.id for known in state.hosts if known.up]
    for known in state.vms:
        passed = set(up)
        for rule in fixed:
            assert rule.filter is not None
            request = request_for(state, CLUSTER, (known.id,), tuple(up))
            passed &= {verdict.host for verdict in rule.filter(state, request) if verdict.accepted}
        passed &= set(known.pinned_hosts or up)
        passed -= {"h0"} if known.id == "v0" else {"h1"} if known.id == "v1" else set()
        assert targets[known.id] in (passed, frozenset())
        assert bool(targets[known.id]) <= known.migratable
