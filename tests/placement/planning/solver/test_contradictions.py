"""What cannot be satisfied together, and what blocks a rule: no piece of such a set is too much."""

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import (
    AffinityGroup,
    PlacementKey,
    PlacementRule,
    RuleDomain,
    SchedulingPolicy,
    Snapshot,
)
from ovirt_placement.planning.plan import NEVER, ObstacleKind
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, pose
from ovirt_placement.planning.problem.problem import Goal, Problem
from ovirt_placement.planning.solver.contradictions import Question, Work, judge
from ovirt_placement.planning.solver.core import Element, core
from ovirt_placement.rules.affinity.constraints import OnHosts, Together
from ovirt_placement.rules.affinity.groups import tied_parts
from ovirt_placement.rules.catalogue import asks
from ovirt_placement.rules.elements.rule import Contradiction, Judgement
from ovirt_placement.rules.placement_rules.in_force import KINDS
from tests.builders import (
    APART,
    CLUSTER,
    DISABLED,
    TOGETHER,
    cluster,
    group,
    host,
    key,
    node_key,
    rule,
    snapshot,
    vm,
)
from tests.examples import examples
from tests.placement.planning.clusters import drawn
from tests.placement.rules.placement_rules.drawn import placement_rules
from tests.placement.rules.placement_rules.oracle import satisfied
from tests.placement.rules.strategies import is_violated

VMS = ("a", "b", "c", "d")
HOSTS = ("h1", "h2", "h3")
HOST_MB = 4096
KEYED = cluster(scheduling_policy=SchedulingPolicy(filters=("PlacementKeyFilter",)))
#: A host with this key, and a VM that nothing draws there.
SHUT = "SHUT"
Piece = AffinityGroup | PlacementRule | str


def judged(state: Snapshot, work: float = 100.0) -> Judgement:
    return judge(state, CLUSTER, tied_parts(asks(state, CLUSTER)), work)


def names(one: Contradiction) -> list[str]:
    return sorted(ask.id for ask in one.asks)


def off_hosts(vms: Collection[str], hosts: Collection[str]) -> tuple[PlacementKey, ...]:
    """Keys that keep each of these VMs off each of the hosts."""
    known = [node_key(one, SHUT, float(one in hosts)) for one in HOSTS]
    return (*known, *(key(SHUT, 1, -200, resource=one) for one in vms))


# -- brute force
def pieces(state: Snapshot) -> list[Piece]:
    """All that may be named: hard groups, hard rules, and VMs with keys."""
    keyed = [one.resource for one in state.placement_keys if one.level == "server"]
    groups = [one for one in state.affinity_groups if one.vms_rule.enabled or one.hosts_rule.enabled]
    return [*groups, *(one for one in state.placement_rules if one.enforcing and one.enabled), *keyed]


def identity(piece: Piece) -> str:
    if isinstance(piece, PlacementRule):
        return f"rule:{piece.name}"
    return piece if isinstance(piece, str) else piece.id


def kept(state: Snapshot, piece: Piece, at: dict[str, str]) -> bool:
    if isinstance(piece, PlacementRule):
        return satisfied(piece, state, at)
    if isinstance(piece, str):
        shut = {one.resource for one in state.placement_keys if one.level == "node" and one.value == 1}
        return at[piece] not in shut
    return not is_violated(piece, [at[one] for one in piece.vms], piece.hosts)


def placements(state: Snapshot) -> Iterator[dict[str, str]]:
    """All VMs anywhere that pinning lets them."""
    choices = [one.pinned_hosts if one.pinned_hosts and not one.migratable else HOSTS for one in state.vms]
    for hosts in product(*choices):
        yield dict(zip((one.id for one in state.vms), hosts, strict=True))


def fits(state: Snapshot, at: dict[str, str]) -> bool:
    need = {one.id: one.guaranteed_mb for one in state.vms}
    return all(sum(need[name] for name in at if at[name] == one.id) <= one.memory_mb for one in state.hosts)


def together(state: Snapshot, some: Sequence[Piece], *, memory: bool) -> bool:
    return any(
        all(kept(state, one, at) for one in some) for at in placements(state) if not memory or fits(state, at)
    )


@st.composite
def states(draw: st.DrawFn, *, large: bool = False, possible: bool = False) -> Snapshot:
    """One part: a rule is about all VMs; or of the pieces only those that can be satisfied by themselves."""

    def some(of: tuple[str, ...], least: int = 1) -> list[str]:
        return draw(st.lists(st.sampled_from(of), min_size=least, max_size=len(of), unique=True))

    sizes = st.sampled_from([1024, 1024, 2048, 3000]) if large else st.just(100)
    vms = [
        vm(name, guaranteed_mb=draw(sizes), migratable=not pinned, pinned_hosts=("h1",) if pinned else ())
        for name in VMS
        for pinned in [draw(st.integers(0, 7)) == 0]
    ]
    groups = [
        group(
            f"g{number}", draw(st.sampled_from([TOGETHER, APART, DISABLED])), " ".join(some(VMS)),
            hosts_rule=draw(st.sampled_from([TOGETHER, APART, DISABLED])), hosts=" ".join(some(HOSTS)[:2]),
        )
        for number in range(draw(st.integers(0, 3)))
    ]  # fmt: skip
    rules = [
        draw(placement_rules(f"r{number}", VMS, HOSTS, tuple(KINDS)))
        for number in range(draw(st.integers(1, 4)))
    ]
    around = rule(
        "around", "capacity", hosts="h1 h2 h3", most=4 if possible else draw(st.sampled_from([3, 4, 4, 4]))
    )
    keyed = some(VMS, 0)[: draw(st.integers(0, 2))]
    hosts = (host(name, memory_mb=HOST_MB) for name in HOSTS)
    state = snapshot(KEYED, *hosts, *vms, *groups, around, *rules)
    state = replace(state, placement_keys=off_hosts(keyed, some(HOSTS)[:2]) if keyed else ())
    if not possible:
        return state
    return replace(
        state,
        affinity_groups=tuple(one for one in groups if together(state, [one], memory=False)),
        placement_rules=tuple(one for one in state.placement_rules if together(state, [one], memory=False)),
    )


def check(state: Snapshot) -> None:
    memory = together(state, (), memory=True)
    left = pieces(state)
    found = judged(state)
    assert found.unknown == ()
    for one in found.contradictions:
        named = [piece for piece in left if identity(piece) in names(one)]
        assert len(named) == len(one.asks)
        assert not together(state, named, memory=memory)
        assert one.smallest
        smaller = [some for size in range(len(named)) for some in combinations(left, size)]
        assert all(together(state, some, memory=memory) for some in smaller)
        assert one.memory is (memory and together(state, named, memory=False))
        left = [piece for piece in left if piece not in named]
    assert together(state, left, memory=memory)


FEW = settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize(
    "drawn",
    [
        pytest.param(states(), id="the smallest set of rules, groups and keys is named"),
        pytest.param(
            states(possible=True), id="what can be satisfied by itself is named with what is against it"
        ),
        pytest.param(states(large=True, possible=True), id="the memory of hosts counts where all VMs fit"),
    ],
)
def test_no_piece_of_a_contradiction_is_too_much(drawn: st.SearchStrategy[Snapshot]) -> None:
    FEW(given(drawn)(check))()


@settings(FEW, max_examples=7)
@given(states())
def test_with_fewer_hosts_and_vms_to_look_at_the_answer_is_the_same(state: Snapshot) -> None:
    part = asks(state, CLUSTER)[:5]
    hosts = {one.id: one.memory_mb for one in state.hosts}
    every, few = (Question(state, part, hosts, Work(100.0), most) for most in (1000, 0))
    for size in range(len(part) + 1):
        for some in combinations(part, size):
            assert (every.contradictory(some) is None) is (few.contradictory(some) is None)


CLASH = snapshot(
    *map(host, HOSTS), *map(vm, VMS), group("apart", APART, "a b"), group("other", TOGETHER, "c d"),
    rule("one", "same_domain", "a b", domains=(RuleDomain(name="r", hosts=("h1",)),)),
    rule("far", "separate", "a", other_vms="c"),
    rule("soft", "at_most_per_host", "a b c d", most=1, enforcing=False),
)  # fmt: skip


def test_a_rule_and_a_group_are_named_and_nothing_else() -> None:
    (found,) = judged(CLASH).contradictions
    assert (names(found), found.smallest, found.memory) == (["apart", "rule:one"], True, False)


def test_hosts_that_are_down_today_count() -> None:
    down = replace(CLASH, hosts=tuple(replace(one, status="maintenance") for one in CLASH.hosts))
    assert [names(one) for one in judged(down).contradictions] == [["apart", "rule:one"]]


def test_ended_work_is_unknown_and_never_guessed() -> None:
    found = judged(CLASH, work=0.0)
    assert found.contradictions == ()
    assert [ask.id for ask in found.unknown[0]] == ["apart", "other", "rule:one", "rule:far"]


def test_work_that_ends_on_the_way_names_a_set_that_is_not_proven() -> None:
    """Two questions are answered: whether all fit, and whether all rules can be satisfied."""
    (found,) = judged(CLASH, work=0.0015).contradictions
    assert {"apart", "rule:one"} <= set(names(found))
    assert not found.smallest


def test_special_keys_hang_on_what_hosts_run_and_contradict_nothing() -> None:
    keys = (key("#RAM", 0, -200, resource="a"), node_key("h1", SHUT, 1.0))
    state = snapshot(KEYED, *CLASH.hosts, *CLASH.vms, rule("r", "at_most_per_host", "a b", most=1))
    assert not any(one.of_keys for one in asks(replace(state, placement_keys=keys), CLUSTER))


def test_keys_count_where_the_policy_has_their_filter() -> None:
    rules = rule("r", "exclusive_hosts", "b", hosts="h2 h3")
    state = replace(snapshot(KEYED, *CLASH.hosts, *CLASH.vms, rules), placement_keys=off_hosts("a", ["h1"]))
    assert [names(one) for one in judged(state).contradictions] == [["a", "rule:r"]]
    without = replace(state, clusters=(cluster(),))
    assert judged(without).contradictions == ()


Placement = dict[str, str]


def holds(goal: Goal, placement: Placement) -> bool:
    hosts = [placement[one] for one in goal.vms if one in placement]
    if isinstance(goal.constraint, OnHosts):
        return all((one in goal.constraint.form.hosts) is goal.constraint.positive for one in hosts)
    return len(set(hosts)) == (1 if isinstance(goal.constraint, Together) else len(hosts))


def respected(problem: Problem, element: Element, placement: Placement) -> bool:
    """Whether a placement keeps to one piece of what is said to block."""
    if element.goal is not None:
        return holds(element.goal, placement)
    first, before = element.ids[0], problem.where
    if element.kind is ObstacleKind.STAYS:
        return placement[first] == before[first]
    if element.kind is ObstacleKind.TARGETS:
        return placement[first] in {*problem.targets[first], before[first]}
    coming = [one for one, now in placement.items() if now == first != before[one]]
    leaving = [one for one, now in placement.items() if now != first == before[one]]
    more_mb = sum(problem.memory_mb[one] for one in coming) - sum(problem.memory_mb[one] for one in leaving)
    return not coming or more_mb <= problem.free_mb[first]


def free(problem: Problem, goal: Goal) -> set[str]:
    """VMs of the goal, and those that rules tie to them which matter as much; nothing else moves."""
    found = set(goal.vms)
    while more := {
        vm
        for other in problem.goals
        if (other.hard or is_kept(other, goal)) and found.intersection(other.vms)
        for vm in other.vms
        if vm not in found
    }:
        found |= more
    return found


def is_kept(other: Goal, goal: Goal) -> bool:
    """Whether it is not given up for the goal."""
    return other.satisfied and other.level <= goal.level and other is not goal


def everything(problem: Problem, goal: Goal) -> Iterator[Element]:
    yield from (Element(ObstacleKind.MEMORY, (one,)) for one in problem.hosts)
    for one in problem.where:
        yield Element(ObstacleKind.TARGETS if problem.targets[one] else ObstacleKind.STAYS, (one,))
    yield from (Element(ObstacleKind.RULE, (), one) for one in problem.goals if is_kept(one, goal))


def ways_out(problem: Problem, goal: Goal, elements: Sequence[Element]) -> Iterator[Placement]:
    """Placements in which the goal is satisfied and that keep to all of these pieces."""
    vms, able = sorted(problem.where), free(problem, goal)
    choices = [dict.fromkeys((problem.where[one], *(problem.hosts if one in able else ()))) for one in vms]
    for hosts in product(*choices):
        placement = dict(zip(vms, hosts, strict=True))
        if holds(goal, placement) and all(respected(problem, one, placement) for one in elements):
            yield placement


def blocked_in(state: Snapshot) -> int:
    """How many violated goals are blocked."""
    problem = pose(state, CLUSTER, options=PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT})))
    blocked = 0
    for goal in problem.goals:
        blocking = None if goal.satisfied else core(problem, goal, NEVER)
        if not goal.satisfied:
            open_ways = next(ways_out(problem, goal, [*everything(problem, goal)]), None)
            assert (blocking is None) is (open_ways is not None)
        if blocking is not None:
            blocked += 1
            assert next(ways_out(problem, goal, blocking), None) is None
            for one in blocking:
                others = [other for other in blocking if other is not one]
                assert next(ways_out(problem, goal, others), None) is not None
    return blocked


@pytest.mark.parametrize("seed", range(0, 200, 40))
def test_it_blocks_and_none_of_it_is_too_much(seed: int) -> None:
    assert sum(blocked_in(drawn(one, hosts=3, vms=5)) for one in range(seed, seed + 40))
