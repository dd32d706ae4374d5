"""An HA reservation is restored by the fewest legal migrations, or it is said that there are none."""

import random
from functools import partial
from heapq import heappop, heappush
from itertools import count

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.answers.plans import plan_record
from ovirt_placement.answers.plans.text import plan_of
from ovirt_placement.answers.plans.text import text as text_of
from ovirt_placement.model import Snapshot
from ovirt_placement.planning import remaining, reservation
from ovirt_placement.planning.plan import NEVER, Deadline, Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, pose
from ovirt_placement.rules.failover.check import Starts
from ovirt_placement.rules.failover.outcomes import Domain, Loss, Proven
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_APART,
    TOGETHER,
    cluster,
    group,
    host,
    label,
    needed_mb,
    snapshot,
    vm,
)
from tests.placement.planning.brute_force import Cluster, Request, Where
from tests.placement.planning.plans import GIB, moves
from tests.placement.rules.failover.restarting import survives

RESERVING = cluster(ha_reservation=True)
RESTORE = PlanOptions(reserve=True)
#: If h1 failed, c would be where one of its VMs is to start.
IN_NEED = snapshot(
    RESERVING, host("h1", free_mb=4 * GIB), host("h2", free_mb=GIB), host("h3", free_mb=GIB),
    vm("a", "h1", ha=True, needs_mb=2 * GIB), vm("b", "h1", ha=True, needs_mb=2 * GIB),
    vm("c", "h3", needs_mb=3 * GIB), vm("d", "h2", needs_mb=GIB),
)  # fmt: skip


def lost(plan: Plan) -> list[tuple[str, ...]]:
    assert plan.reservation is not None
    return [failure.hosts for failure in plan.reservation.lost]


def test_what_needs_no_start_goes_where_what_needs_one_leaves_no_room() -> None:
    state = IN_NEED
    plan = make_plan(state, CLUSTER, options=RESTORE)
    assert (moves(plan), plan.proven, plan.at_least, lost(plan)) == (["c to h1"], True, 1, [])
    text = text_of(plan_record(plan, state))
    assert "1 migration, the fewest" in text
    assert "c from h3 to h1: for the HA reservation" in text
    document = msgspec.json.decode(msgspec.json.encode(plan_record(plan, state)))
    assert document["reservation"] == {"holds": True, "proven": True, "lost": [], "waits": ""}
    assert plan_of(document).steps == plan.steps


def test_nobody_asks_nobody_moves() -> None:
    state = snapshot(RESERVING, host("h1"), host("h2", free_mb=0), vm("a", "h1", ha=True))
    assert make_plan(state, CLUSTER).reservation is None
    off = replace(state, clusters=(cluster(ha_reservation=False),))
    assert make_plan(off, CLUSTER, options=RESTORE).reservation is None


def test_it_is_said_what_no_migrations_restore() -> None:
    state = snapshot(RESERVING, host("h1"), host("h2", free_mb=512), vm("a", "h1", ha=True))
    plan = make_plan(state, CLUSTER, options=RESTORE)
    assert (plan.steps, lost(plan)) == ((), [("h1",)])
    text = text_of(plan_record(plan, state))
    assert "The HA reservation is not restored: no legal migrations restore it" in text
    assert "if host h1 failed, no home would be left for a" in text


def test_of_what_cannot_be_restored_as_much_as_can_is() -> None:
    state = snapshot(
        RESERVING, host("h1", free_mb=4 * GIB), host("h2", free_mb=GIB), host("h3", free_mb=GIB),
        vm("a", "h1", ha=True, needs_mb=3 * GIB), vm("c", "h3", needs_mb=3 * GIB),
        vm("only", "h2", ha=True, needs_mb=GIB), group("g", vms="only", hosts_rule=TOGETHER, hosts="h2"),
    )  # fmt: skip
    plan = make_plan(state, CLUSTER, options=RESTORE)
    assert (moves(plan), lost(plan)) == (["c to h1"], [("h2",)])


def test_rules_are_repaired_first_and_none_is_violated_for_it_hard_or_soft() -> None:
    state = snapshot(
        RESERVING, host("h1", free_mb=8 * GIB), host("h2", free_mb=GIB), host("h3", free_mb=GIB),
        vm("a", "h1", ha=True, needs_mb=3 * GIB), vm("rival", "h1", needs_mb=GIB),
        vm("c", "h2", needs_mb=3 * GIB), vm("d", "h3", needs_mb=GIB), vm("e", "h3", needs_mb=GIB),
        group("soft", SOFT_APART, "a c"), group("hard", APART, "rival d"),
    )  # fmt: skip
    plan = make_plan(state, CLUSTER, options=RESTORE)
    assert (sorted(moves(plan)), lost(plan)) == (["d to h2", "e to h1"], [])
    without = replace(state, affinity_groups=state.affinity_groups[1:])
    assert moves(make_plan(without, CLUSTER, options=RESTORE)) == ["c to h1"]
    both = replace(state, affinity_groups=(group("h", APART, "d e"),))
    repaired = make_plan(both, CLUSTER, options=RESTORE)
    assert ([step.reserves for step in repaired.steps], repaired.remaining) == ([False, True], ())
    assert lost(repaired) == []


def test_headroom_is_taken_only_where_nothing_else_helps() -> None:
    state = snapshot(
        RESERVING, host("h1", memory_mb=16 * GIB, free_mb=4 * GIB),
        host("h2", memory_mb=16 * GIB, free_mb=GIB), host("h3", memory_mb=16 * GIB, free_mb=GIB),
        vm("a", "h1", ha=True, needs_mb=2 * GIB), vm("b", "h1", ha=True, needs_mb=2 * GIB),
        vm("c", "h3", needs_mb=4 * GIB), vm("d1", "h2", needs_mb=GIB), vm("d2", "h3", needs_mb=GIB),
    )  # fmt: skip
    kept = make_plan(state, CLUSTER, options=PlanOptions(reserve=True, memory_headroom=0.1))
    assert moves(kept) in (["d1 to h1", "d2 to h1"], ["d2 to h1", "d1 to h1"])
    assert (kept.crowded, lost(kept)) == ((), [])
    taken = make_plan(state, CLUSTER, options=PlanOptions(reserve=True, memory_headroom=0.2))
    assert taken.crowded == ("h1",)
    assert "or the HA reservation needs it" in text_of(plan_record(taken, state))


def test_a_whole_domain_is_to_be_survived() -> None:
    state = snapshot(
        RESERVING, host("h1", free_mb=4 * GIB), host("h2", free_mb=4 * GIB), host("h3", free_mb=0),
        vm("a", "h1", ha=True, needs_mb=2 * GIB), vm("c", "h3", needs_mb=2 * GIB),
    )  # fmt: skip
    assert make_plan(state, CLUSTER, options=RESTORE).steps == ()
    rack = Domain("rack", frozenset({"h1", "h2"}))
    plan = make_plan(state, CLUSTER, options=PlanOptions(reserve=True, domains=(rack,)))
    assert (len(plan.steps), plan.steps[0].vms, lost(plan)) == (1, ("c",), [])


@pytest.mark.parametrize("seed", range(6))
def test_no_fewer_migrations_would_do(seed: int) -> None:
    """Against all legal ways, walked by others who know nothing of the planner or of the rules."""
    chance = random.Random(seed)
    judged = [check(drawn(chance), chance) for _ in range(40)]
    judged += [check(drawn_in_need_of_room(chance), chance) for _ in range(8)]
    assert {"restored", "restored by several", "hopeless"} <= {*judged}


def check(state: Snapshot, chance: random.Random) -> str:
    oracle = Cluster(state)
    begin = lost_hosts(state, oracle.start)
    if not begin or oracle.violated(oracle.start):
        return "not asked"
    plan = make_plan(state, CLUSTER, options=RESTORE)
    end = dict(oracle.start)
    for step in plan.steps:
        end |= dict.fromkeys(step.vms, step.target)
        assert len(lost_hosts(state, end)) <= len(begin), moves(plan)
    assert {one for failure in lost(plan) for one in failure} == lost_hosts(state, end) <= begin
    assert oracle.violated(end) == 0
    fewest = fewest_to_restore(state, oracle, len(begin))
    assert (fewest is None) == bool(lost(plan))
    assert fewest is None or plan.migrations == fewest
    requests = [Request(step.vms, step.target, step.after) for step in plan.steps]
    assert all(oracle.replay(requests, chance) is None for _ in range(3))
    assert plan.reservation is not None
    assert plan.reservation.proven
    return "hopeless" if fewest is None else "restored by several" if fewest > 1 else "restored"


@pytest.mark.parametrize("seed", range(3))
def test_in_a_larger_cluster_every_host_may_fail_afterwards(seed: int) -> None:
    """All that need homes are of one size and in no group: homes can be counted."""
    chance = random.Random(seed)
    hosts = [host(f"h{number:02}", free_mb=GIB * chance.randint(2, 3)) for number in range(1, 20)]
    full = host("h00", free_mb=8 * GIB)
    vms = [
        vm(f"v{number}", f"h{1 + number % 19:02}", needs_mb=GIB * chance.randint(1, 2))
        for number in range(60)
    ]
    needy = [vm(f"ha{number}", "h00", needs_mb=4 * GIB, ha=True) for number in range(3)]
    state = snapshot(RESERVING, full, *hosts, *vms, *needy)
    plan = make_plan(state, CLUSTER, options=RESTORE)
    assert lost(plan) == []
    oracle = Cluster(state)
    assert oracle.replay([Request(step.vms, step.target, step.after) for step in plan.steps], chance) is None
    for left_out in (None, *plan.steps):
        where = {one: step.target for step in plan.steps if step is not left_out for one in step.vms}
        there = at(state, oracle.start | where)
        on = [one for one in there.vms if one.ha and one.host == "h00"]
        homes = sum(one.free_mb // (4 * GIB) for one in there.hosts if one.id != "h00")
        assert (len(on) <= homes) is (left_out is None)


def drawn(chance: random.Random) -> Snapshot:
    hosts = [host(f"h{number}", free_mb=GIB * chance.randint(0, 3)) for number in range(chance.randint(3, 4))]
    vms = [
        vm(f"v{number}", chance.choice(hosts).id, needs_mb=GIB * chance.choice([1, 1, 2, 3]),
           ha=chance.random() < 0.6, migratable=chance.random() < 0.9)
        for number in range(chance.randint(3, 5))
    ]  # fmt: skip
    groups = [
        group(
            f"g{number}", chance.choice([APART, TOGETHER]), " ".join(one.id for one in chance.sample(vms, 2))
        )
        for number in range(chance.randint(0, 2))
    ]
    return snapshot(RESERVING, *hosts, *vms, *groups)


def drawn_in_need_of_room(chance: random.Random) -> Snapshot:
    """What a needs on another host is on h2, once c has left it; for that, d must leave h3.

    The one place for d is where e is to start if its host fails: on the way, that is lost as well.
    """
    size = chance.randint(2, 3)
    spare = chance.choice([0, 0, 0, 0, 1, 2])
    room = {"h1": 0, "h2": 1, "h3": size - 1, "h4": spare}
    vms = [
        vm("a", "h1", needs_mb=GIB * size, ha=True, migratable=chance.random() < 0.5),
        vm("c", "h2", needs_mb=GIB * size),
        vm("d", "h3", needs_mb=GIB),
        vm("e", "h3", needs_mb=GIB, ha=True, migratable=chance.random() < 0.3),
    ]
    if chance.random() < 0.5:
        more = chance.choice([1, 1, 2])
        vms.append(
            vm("x", chance.choice(["h1", "h4"]), needs_mb=GIB * more, migratable=chance.random() < 0.3)
        )
    apart = [group("g", APART, "a e")] if chance.random() < 0.9 else []
    return snapshot(RESERVING, *(host(name, free_mb=GIB * free) for name, free in room.items()), *vms, *apart)


def at(state: Snapshot, where: Where) -> Snapshot:
    used = {one.id: needed_mb(one) for one in state.vms}
    shift = {
        one.id: sum(used[vm] for vm, place in where.items() if place == one.id)
        - sum(used[vm.id] for vm in state.vms if vm.host == one.id)
        for one in state.hosts
    }
    return replace(
        state,
        vms=tuple(replace(one, host=where[one.id]) for one in state.vms),
        hosts=tuple(replace(one, free_mb=one.free_mb - shift[one.id]) for one in state.hosts),
    )


def lost_hosts(state: Snapshot, where: Where) -> set[str]:
    there = at(state, where)
    return {one.id for one in state.hosts if not survives(there, (one.id,))}


def fewest_to_restore(state: Snapshot, oracle: Cluster, most_lost: int) -> int | None:
    """Over states in which no rule is violated, and no more failures are lost than at the start."""
    known = {oracle.known.start: 0}
    queue = [(0, oracle.known.start)]
    while queue:
        cost, places = heappop(queue)
        where = oracle.named(places)
        if known[places] < cost or oracle.violated(where):
            continue
        missing = lost_hosts(state, where)
        if not missing:
            return cost
        if len(missing) > most_lost:
            continue
        for reached, more in oracle.known.migrations(places):
            if cost + more < known.get(reached, 10**9):
                known[reached] = cost + more
                heappush(queue, (known[reached], reached))
    return None


@given(
    st.dictionaries(st.sampled_from([("h1",), ("h2",), ("h3",)]), st.integers(1, 3)),
    st.dictionaries(st.sampled_from([("h1",), ("h2",), ("h3",)]), st.integers(1, 3)),
)
@example({("h1",): 1}, {("h1",): 2})
def test_harm_is_more_failures_that_are_lost_or_more_vms_without_a_home(
    before: dict[tuple[str, ...], int], after: dict[tuple[str, ...], int]
) -> None:
    now, then = ([Loss(hosts, tuple("abc"[:n])) for hosts, n in each.items()] for each in (before, after))
    harmed = len(after) > len(before) or sum(after.values()) > sum(before.values())
    assert (remaining._compared(now, then) is not None) == harmed


def test_a_repair_takes_no_more_from_a_failure_domain_than_it_must() -> None:
    """With a on h4, which has most room, v would restart if its host failed, and not if its rack did."""
    state = snapshot(
        RESERVING, host("h1", free_mb=5 * GIB), host("h2", free_mb=0), host("h3", free_mb=GIB),
        host("h4", free_mb=6 * GIB), vm("a", "h3", needs_mb=2 * GIB), vm("b", "h3", needs_mb=4 * GIB),
        vm("v", "h2", needs_mb=5 * GIB, ha=True), group("g", APART, "a b"),
    )  # fmt: skip
    racks = (Domain("r1", frozenset({"h1", "h2"})), Domain("r2", frozenset({"h3", "h4"})))
    plan = make_plan(state, CLUSTER, options=PlanOptions(domains=racks))
    assert (moves(plan), plan.costs) == (["a to h1"], ())


_LOST = st.dictionaries(st.sampled_from([("h1",), ("h2",), ("h1", "h2")]), st.integers(1, 3))


@given(_LOST, _LOST, st.booleans())
@example({("h1",): 1}, {("h1",): 2}, False)
@example({("h1",): 1}, {("h1", "h2"): 1}, False)
@example({("h1", "h2"): 1}, {("h1",): 1}, False)
def test_a_state_on_the_way_is_no_worse_by_failures_by_vms_and_by_what_is_known(
    before: dict[tuple[str, ...], int], after: dict[tuple[str, ...], int], doubt: bool
) -> None:
    def judged(lost: dict[tuple[str, ...], int], unjudged: int) -> reservation.Failing:
        losses = tuple(Loss(hosts, tuple("abc"[:count])) for hosts, count in lost.items())
        return reservation.Failing(
            Starts(IN_NEED, CLUSTER),
            (Proven(safe=None, losses=losses, unknown=(), survived=0, unjudged=unjudged, survivals=()),),
        )

    # Hosts whose failure is lost are lost with others, too.
    was_lost = all(any({*part} <= {*hosts} for part in before) for hosts in after)
    no_worse = was_lost and sum(after.values()) <= sum(before.values()) and not doubt
    assert judged(after, int(doubt)).no_worse_than(judged(before, 0)) == no_worse


def test_what_a_label_costs_that_is_a_rule_and_brings_members_into_a_group() -> None:
    """Without its rule `x` would restart on h1, and both are members of the group all the same."""
    state = snapshot(
        cluster(CLUSTER, ha_reservation=True, compatibility="4.3"),
        host("h1", free_mb=0), host("h2", free_mb=3 * GIB), host("h3", free_mb=0),
        vm("a", "h1", needs_mb=2 * GIB), vm("x", "h3", needs_mb=2 * GIB, ha=True),
        label("l", "a x", "h2 h3", implicit=True), group("g", APART, vm_labels=("l",)),
    )  # fmt: skip
    plan = make_plan(state, CLUSTER)
    assert [(step.vms, step.target) for step in plan.steps] == [(("a",), "h2")]
    assert [(cost.hosts, cost.vms) for cost in plan.costs] == [(("h3",), ("x",))]
    kept = remaining.without_rules(state, {"l"})
    assert kept.group_vms == state.group_vms
    assert not any(one.implicit for one in kept.affinity_labels)


def test_a_search_that_time_has_ended_proves_nothing() -> None:
    """Wherever it ends: the only state that was to be looked at may be left half done."""
    state = IN_NEED
    problem = pose(state, CLUSTER, options=RESTORE)
    start = reservation.failing(state, CLUSTER, ())
    best = reservation.Search(state, problem, (), roomy=False).run(start, NEVER)
    assert (best.proven, best.end.unplaced) == (True, 0)
    for questions in range(40):
        deadline = Deadline(partial(next, count(questions, -1)))
        found = reservation.Search(state, problem, (), roomy=False).run(start, deadline)
        assert not found.proven or not found.end.unplaced, questions
