"""Rounds of maintenance: once and forwards, with late hosts last, and hosts that need no emptying first."""

import random
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.answers.plans import obstacle_text
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.planning import reservation as failing
from ovirt_placement.planning.maintenance.planner import plan_maintenance
from ovirt_placement.planning.maintenance.site import MaintenanceOptions, MaintenancePlan, Reserve, leaving
from ovirt_placement.planning.plan import Deadline, ObstacleKind
from ovirt_placement.planning.problem.build_problem import legal
from ovirt_placement.planning.steps import apply
from ovirt_placement.rules.failover.outcomes import Domain
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_TOGETHER,
    TOGETHER,
    Part,
    cluster,
    group,
    host,
    pending,
    snapshot,
    vm,
)
from tests.placement.planning.test_ha_repair import at, drawn, lost_hosts
from tests.placement.rules.failover.restarting import survives


def full(name: str, *, vms: int, **fields: Any) -> tuple[Part, ...]:
    """A host with room for eight VMs of 1 GiB, and that many on it."""
    return (
        host(name, **{"memory_mb": 8192, "free_mb": 8192 - 1024 * vms, **fields}),
        *(vm(f"{name}-{number}", name) for number in range(vms)),
    )


def like_hosts(count: int, vms: int) -> list[Part]:
    return [part for number in range(count) for part in full(f"h{number}", vms=vms)]


def hosts_of(parts: list[Part]) -> list[str]:
    return [part.id for part in parts if isinstance(part, Host)]


def all_out(*parts: Part) -> MaintenancePlan:
    return plan_maintenance(snapshot(*parts), hosts_of([*parts]))


def test_vms_leave_hosts_in_the_same_order_in_every_process() -> None:
    """Else the same question has another plan each time."""
    parts = like_hosts(9, 1)
    found = leaving(snapshot(*parts), frozenset(hosts_of(parts)))
    assert [one.vms for one in found] == [(f"h{number}-0",) for number in range(9)]


@pytest.mark.parametrize(
    ("parts", "at_once", "sizes", "migrations"),
    [
        pytest.param(like_hosts(5, 6), 1, [1] * 5, (5 + 1) * 6, id="twice but for those of the first host"),
        pytest.param(like_hosts(5, 3), 2, [1, 2, 2], 5 * 3 + 3, id="a small first round that costs none"),
        pytest.param(
            [*full("away", vms=0, status="maintenance"), *like_hosts(3, 6)], 1, [1] * 4, 3 * 6,
            id="an empty host first, and no VM moves twice",
        ),
    ],
)  # fmt: skip
def test_vms_go_to_hosts_that_are_done_where_that_can_be(
    parts: list[Part], at_once: int, sizes: list[int], migrations: int
) -> None:
    plan = plan_maintenance(snapshot(*parts), hosts_of(parts), MaintenanceOptions(at_once=at_once))
    assert [len(one.hosts) for one in plan.rounds] == sizes
    assert (plan.rounds_at_least, plan.migrations_at_least) == (len(sizes), plan.migrations)
    assert (plan.migrations, plan.proven) == (migrations, True)
    assert ("away" in hosts_of(parts)) is (plan.rounds[0].hosts == ("away",))


def test_a_large_vm_steps_aside_where_three_would_move_twice() -> None:
    """It moves twice besides, and they move once: on the host that stays up is room for them or for it."""
    parts = [
        *full("h1", vms=3, memory_mb=6144, free_mb=3072),
        *full("h3", vms=3, memory_mb=6144, free_mb=3072),
    ]
    parts += [host("h2", memory_mb=3072, free_mb=0), vm("large", "h2", needs_mb=3072)]
    plan = plan_maintenance(snapshot(*parts), ["h1", "h3"])
    assert (len(plan.rounds), plan.migrations, plan.proven) == (2, 3 + 3 + 2, True)
    assert plan.migrations_at_least == plan.migrations


def test_a_host_that_is_down_and_empty_is_not_reckoned_with() -> None:
    plan = all_out(*like_hosts(2, 3), *full("down", vms=0, status="down"))
    assert "down" in plan.hosts
    assert all(step.target != "down" for one in plan.rounds for step in one.steps)


def test_a_host_that_does_not_answer_is_not_emptied() -> None:
    (blocked,) = all_out(*like_hosts(2, 3), *full("lost", vms=1, status="non_responsive")).blocked
    assert (blocked.host, blocked.obstacles[0].hosts) == ("lost", ("lost",))


def test_the_storage_pool_manager_is_last_and_the_hosted_engine_before() -> None:
    parts = [*full("a", vms=2, spm=True), *full("b", vms=2), *full("c", vms=2), *full("d", vms=1)]
    plan = all_out(*parts, vm("engine", "b", hosted_engine=True))
    assert plan.hosts[-2:] == ("b", "a")
    ((moved, target),) = plan.rounds[-2].by_engine
    assert (moved, target in {"a", "b"}) == ("engine", False)


def test_the_storage_pool_manager_is_last_though_fewer_would_move() -> None:
    """Two migrations would do if it came before the host whose VM only it has room for."""
    plan = all_out(
        host("h1", free_mb=8192), host("h2", free_mb=1024), host("h3", free_mb=4096, spm=True),
        vm("large", "h1", needs_mb=2048), vm("small", "h3"),
    )  # fmt: skip
    assert (plan.hosts[-1], plan.migrations, plan.proven) == ("h3", 3, True)


def test_a_pinned_vm_is_named_and_stopped_only_by_consent() -> None:
    parts = [*like_hosts(3, 2), vm("pinned", "h1", migratable=False)]
    state = snapshot(*parts)
    (blocked,) = plan_maintenance(state, hosts_of(parts)).blocked
    assert (blocked.host, blocked.vms) == ("h1", ("pinned",))
    plan = plan_maintenance(state, hosts_of(parts), MaintenanceOptions(stopped=frozenset({"pinned"})))
    assert (plan.blocked, [one.stopped for one in plan.rounds if "h1" in one.hosts]) == ((), [("pinned",)])


def test_a_hard_positive_group_moves_at_once_and_a_negative_one_stays_apart() -> None:
    together, apart = group("t", TOGETHER, "h0-0 h0-1"), group("a", APART, "h0-2 h1-2")
    plan = all_out(*like_hosts(3, 3), together, apart)
    assert (len(plan.rounds), plan.migrations) == (3, 4 * 3)
    assert ("h0-0", "h0-1") in {step.vms for one in plan.rounds for step in one.steps}


def test_a_host_without_a_round_costs_the_others_none() -> None:
    """The first is bound to its host by a rule: the pool manager, which comes last, goes with the second."""
    parts = [*full("a", vms=1), *full("b", vms=0), *full("c", vms=0, spm=True)]
    bound = group("g", vms="a-0", hosts_rule=TOGETHER, hosts="a")
    plan = plan_maintenance(snapshot(*parts, bound), ["a", "b", "c"], MaintenanceOptions(at_once=2))
    assert [one.hosts for one in plan.rounds] == [("b", "c")]
    assert (plan.rounds_at_least, plan.migrations_at_least, plan.proven) == (1, 0, True)


@pytest.mark.parametrize(
    "coming",
    [vm("new"), vm("new", "b", status="migrating", migrating_to="a")],
    ids=["a start", "a migration"],
)
def test_no_host_is_taken_out_that_a_vm_is_on_its_way_to(coming: Vm) -> None:
    state = snapshot(*full("a", vms=0), *full("b", vms=1), coming, pending("new", "a"))
    (blocked,) = plan_maintenance(state, ["a"]).blocked
    assert [obstacle_text(one, state) for one in blocked.obstacles] == ["VM new is on its way there"]


def test_a_failure_that_is_survived_is_not_lost_in_place_of_another() -> None:
    """Both hosts that have room for it may not fail now; while one is out, the other may not fail alone.

    What is lost with the third host in any case is more, and not named.
    """
    hosts = *full("a", vms=0), *full("b", vms=0), *full("c", vms=0, memory_mb=512, free_mb=512)
    bound = (vm(name, "c", ha=True, migratable=False, pinned_hosts=("c",)) for name in ("p", "q"))
    protected = cluster(ha_reservation=True, ha_failures=2), vm("v", "a", ha=True), *bound
    (blocked,) = plan_maintenance(snapshot(*protected, *hosts), ["b"]).blocked
    assert [(one.kind, one.hosts, one.unplaced) for one in blocked.obstacles] == [
        (ObstacleKind.OUT, ("a",), ("v",))
    ]


def test_the_hosted_engine_takes_room_that_a_failure_needs() -> None:
    """Where it is expected while its host is out."""
    hosts = host("a", free_mb=8192), host("b", free_mb=4096), host("c", free_mb=0)
    vms = vm("engine", "a", hosted_engine=True), vm("v", "c", needs_mb=4096, ha=True)
    for reserves in (False, True):
        plan = plan_maintenance(snapshot(cluster(ha_reservation=reserves), *hosts, *vms), ["a"])
        assert [one.host for one in plan.blocked] == ["a"] * reserves


def test_a_domain_that_is_lost_already_lets_its_hosts_be_taken_out() -> None:
    hosts = (host(name, free_mb=0) for name in ("a", "b", "c"))
    state = snapshot(cluster(ha_reservation=True), *hosts, vm("v", "b", ha=True))
    options = MaintenanceOptions(domains=(Domain("rack", ("a", "b")),))
    assert plan_maintenance(state, ["a"], options).hosts == ("a",)


def test_a_reservation_that_would_be_lost_is_a_reason() -> None:
    parts: list[Part] = [
        cluster(ha_reservation=True),
        *(host(name, memory_mb=8192, free_mb=8192 - 4096) for name in ("a", "b", "c")),
        *(vm(f"v{name}", name, needs_mb=4096, ha=True) for name in ("a", "b", "c")),
    ]
    plan = plan_maintenance(snapshot(*parts), ["a"])
    assert plan.rounds == ()
    (blocked,) = plan.blocked
    assert [one.kind for one in blocked.obstacles] == [ObstacleKind.OUT]
    (relaxed,) = plan.relaxations
    assert relaxed.hosts == ("a",)


def test_all_come_back_only_where_that_is_asked_for() -> None:
    parts = like_hosts(4, 4)
    state = snapshot(*parts)
    assert plan_maintenance(state, hosts_of(parts)).back == ()
    plan = plan_maintenance(state, hosts_of(parts), MaintenanceOptions(back=Return.ALL))
    at = {one.id: one.host for one in state.vms}
    for step in (*(step for one in plan.rounds for step in one.steps), *plan.back):
        assert [at[vm] for vm in step.vms] == list(step.sources)
        at.update(dict.fromkeys(step.vms, step.target))
    assert at == {one.id: one.host for one in state.vms}
    assert plan.kept == ()


def test_those_of_soft_rules_come_back_alone() -> None:
    parts: list[Part] = [*like_hosts(3, 3), group("soft", hosts_rule=SOFT_TOGETHER, vms="h0-0", hosts="h0")]
    plan = plan_maintenance(snapshot(*parts), ["h0"], MaintenanceOptions(back=Return.RULED))
    assert [(step.vms, step.target) for step in plan.back] == [(("h0-0",), "h0")]


def test_a_rule_that_is_in_the_way_is_named_with_what_relaxing_it_frees() -> None:
    bound = group("bound", hosts_rule=TOGETHER, vms="a-0", hosts="a")
    plan = all_out(*full("a", vms=1), *full("b", vms=1), bound)
    (blocked,) = plan.blocked
    assert (blocked.host, blocked.vms) == ("a", ("a-0",))
    (relaxed,) = plan.relaxations
    assert (relaxed.obstacle.groups, relaxed.hosts) == (("bound",), ("a",))


def test_other_hosts_vms_step_aside_where_that_alone_makes_room() -> None:
    """Small VMs go from one host to the other until a large one fits there."""
    parts: list[Part] = [
        host("a", memory_mb=8192, free_mb=4096), host("b", memory_mb=8192, free_mb=2048),
        host("c", memory_mb=8192, free_mb=2048), vm("large", "a", needs_mb=4096),
        *(vm(f"b{number}", "b", needs_mb=1024) for number in range(6)),
        *(vm(f"c{number}", "c", needs_mb=1024) for number in range(6)),
        *(vm(f"stays{number}", migratable=True) for number in range(30)),
    ]  # fmt: skip
    plan = plan_maintenance(snapshot(*parts), ["a"])
    assert (plan.hosts, plan.migrations) == (("a",), 3)


def test_a_plan_that_has_no_time_left_is_legal_as_far_as_it_goes() -> None:
    """Where rules refuse a move that the search chose, the rounds before it are the plan."""
    parts = [*like_hosts(4, 4), group("apart", APART, "h0-0 h1-0"), group("pair", TOGETHER, "h2-0 h2-1")]
    over = Deadline(lambda: 0.0)
    plan = plan_maintenance(snapshot(*parts), hosts_of(parts), deadline=over)
    named = [*plan.hosts, *(one.host for one in plan.blocked)]
    assert sorted(named) == sorted(hosts_of(parts))
    state = snapshot(*parts)
    for one in plan.rounds:
        for step in one.steps:
            assert legal(state, step)
            state = apply(state, step)
        assert not any(state.vms_of_host.get(host) for host in one.hosts)


# -- A state on the way is as safe as the beginning only where that is proven, whatever work it takes.
ENOUGH = 1_000_000
#: Steps of a check that ends before all failures are judged, or just then.
BUDGETS = (0, 1, 2, 3, 4, 6, 10, ENOUGH)


def reserve_of(state: Snapshot, steps: int) -> Reserve:
    with mock.patch.object(failing, "DEFAULT_BUDGET", steps):
        return Reserve(state, CLUSTER, ())


def worse(reserve: Reserve, state: Snapshot, steps: int) -> bool:
    with mock.patch.object(failing, "DEFAULT_BUDGET", steps):
        return reserve.worse(state) is not None


def elsewhere(state: Snapshot, chance: random.Random) -> Snapshot:
    """One VM or two on other hosts; what is lost then may be more, less or the same."""
    where = {one.id: one.host for one in state.vms if one.host is not None}
    for moved in chance.sample(sorted(where), chance.randint(0, 2)):
        where[moved] = chance.choice([one.id for one in state.hosts])
    return at(state, where)


def protecting(chance: random.Random) -> Snapshot:
    """At least one VM is highly available."""
    state = drawn(chance)
    return replace(state, vms=(replace(state.vms[0], ha=True), *state.vms[1:]))


@given(st.integers(0, 10**6))
def test_nothing_that_is_not_proven_counts_as_safe(seed: int) -> None:
    chance = random.Random(seed)
    start = protecting(chance)
    state, known = elsewhere(start, chance), reserve_of(start, ENOUGH)
    before = {one.id: one.host for one in start.vms if one.host is not None}
    after = {one.id: one.host for one in state.vms if one.host is not None}
    more = len(lost_hosts(state, after)) > len(lost_hosts(start, before))
    answers = [worse(known, state, steps) for steps in BUDGETS]
    assert answers[0], "nothing was judged"
    assert all(answers) or not more
    assert answers == sorted(answers, reverse=True), "more work can only prove that it is as safe"
    assert not worse(known, start, ENOUGH)


@given(st.integers(0, 10**6))
def test_what_was_not_known_at_the_beginning_need_not_be_known_later(seed: int) -> None:
    chance = random.Random(seed)
    start = protecting(chance)
    unknown = reserve_of(start, 0)
    assert not worse(unknown, start, 0)
    state = elsewhere(start, chance)
    lost = [one.id for one in state.hosts if not survives(state, (one.id,))]
    assert worse(unknown, state, ENOUGH) is bool(lost)


@given(st.integers(0, 10**6))
def test_without_a_reservation_nothing_is_asked(seed: int) -> None:
    chance = random.Random(seed)
    state = replace(protecting(chance), clusters=(cluster(ha_reservation=False),))
    assert not worse(reserve_of(state, ENOUGH), elsewhere(state, chance), 0)
