"""Repairs and what holds them back; what a change or a start would cost: no more is claimed than is so."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.answers.placement import where
from ovirt_placement.answers.plans.what_if import WhatIfDocument, lines, measures, preview
from ovirt_placement.answers.status import EnforcementRecord
from ovirt_placement.answers.status.health import Health, judge
from ovirt_placement.forecast import changed_groups, find_barred
from ovirt_placement.model import AffinityGroup, SchedulingPolicy, Snapshot, state_file
from ovirt_placement.model.infrastructure import HOST_STATUSES
from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import Repair
from ovirt_placement.planning.strategies import StrategyName, strategy
from ovirt_placement.rules.doubts import Believed, believed
from ovirt_placement.rules.elements.verdict import BalanceMove
from ovirt_placement.rules.load import choose_move
from ovirt_simulator.scheduler import filters
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    cluster,
    group,
    host,
    snapshot,
    vm,
)
from tests.golden.questions import STATES, ask_about
from tests.paths import DATA

#: All that is violated is repaired by these moves, some VMs at once.
REPAIRED_BY = {
    "group-and-any-capacity": {"vm-1": "node-C", "vm-2": "node-C"},
    "group-and-its-capacity": {"v1": "h1", "v2": "h1"},
    "group-and-one-domain": {"v1": "h0", "v2": "h0"},
    "group-out-of-a-domain": {"v0": "h2", "v1": "h2"},
    "group-and-full-capacity": {"v1": "h0", "v2": "h0"},
    "apart-in-the-end": {"v5": "h0", "v0": "h2"},
    "one-domain-in-the-end": {"a": "h1", "b": "h1"},
}


@pytest.mark.parametrize("name", sorted(REPAIRED_BY))
def test_what_can_be_repaired_is_not_proven_to_be_beyond_repair(name: str) -> None:
    state = state_file.load(DATA / "cases" / "plans" / f"{name}.json")
    plan = make_plan(state, state.clusters[0].id)
    where = {vm: step.target for step in plan.steps for vm in step.vms}
    assert where == REPAIRED_BY[name] or not (plan.proven and plan.remaining)


def test_a_rule_that_cannot_be_satisfied_keeps_no_group_where_it_must_not_be() -> None:
    state = state_file.load(DATA / "cases" / "plans" / "group-in-two-domains.json")
    plan = make_plan(state, state.clusters[0].id)
    assert [(step.vms, step.target) for step in plan.steps] == [(("v0", "v2"), "h0")]
    assert (plan.refused, [one.groups for one in plan.remaining]) == ((), [("rule:r1",)])


def test_a_host_that_does_not_answer_is_the_reason_and_is_named_once() -> None:
    text = ask_about("ovirt-enforcer maintenance plan --cluster c", "host-without-answer").text
    assert (
        "  No round for h4:\n    - the host has status non_responsive, so that its VMs cannot leave it\n"
        in text
    )
    assert "--stop" not in text


def test_what_may_be_relaxed_has_a_name() -> None:
    text = ask_about("ovirt-enforcer maintenance plan --cluster c", "ha-apart-on-two-hosts").text
    assert "Without affinity group apart alone, there is still no round" in text
    assert not re.search(r"Without +alone|\bto :|: *$", text.split("No round for h1:")[0])
    assert "Without  " not in text


def test_a_migration_that_the_engine_refused_makes_nothing_degraded() -> None:
    leads = {"mode": "enforce", "configured_mode": "enforce", "leader": "h-1-x"}
    refused = EnforcementRecord(**leads, migrations_refused=1)  # type: ignore[arg-type]
    assert judge(None, (), (), refused, None) == (Health.HEALTHY, ())
    failed = EnforcementRecord(**leads, migrations_failed=1)  # type: ignore[arg-type]
    assert judge(None, (), (), failed, None)[0] is Health.DEGRADED


def test_the_way_to_restore_a_reservation_helps_as_it_is_said(tmp_path: Path) -> None:
    checked = ask_about("ovirt-placement ha-check", "reservation-to-restore")
    assert checked.status == 1
    assert "with [enforcer.ha] repair = true (docs/ha.md):\n  ovirt-enforcer plan" in checked.text
    config = tmp_path / "config.toml"
    config.write_text("[enforcer.ha]\nrepair = true\n")
    planned = ask_about(f"ovirt-enforcer plan --config {config}", "reservation-to-restore")
    assert planned.text.startswith("Cluster c: 1 migration")


@pytest.mark.parametrize("state", ["no-host-up", "one-draining-host"])
@pytest.mark.parametrize("strategy", ["greedy", "optimal", "random"])
def test_where_no_host_is_up_a_plan_says_so(state: str, strategy: str) -> None:
    answer = ask_about(f"ovirt-enforcer plan --strategy {strategy}", state)
    assert answer.status == 4
    assert "no host is up" in answer.text
    assert "no VM is migrated" in ask_about("ovirt-enforcer simulate-policy", state).text


def test_the_hosted_engine_leaves_by_the_engine_itself() -> None:
    found = ask_about("ovirt-placement what-if --maintenance h1 --fail-if staying", "hosted-engine")
    assert found.status == 0
    assert "HostedEngine is moved by the engine itself, probably to h3" in found.text
    assert "cannot leave" not in found.text
    planned = ask_about("ovirt-enforcer maintenance plan h1", "hosted-engine").text
    assert "HostedEngine is moved by the engine itself" in planned


@given(
    statuses=st.lists(st.sampled_from(sorted(HOST_STATUSES)), min_size=1, max_size=4),
    homes=st.lists(st.integers(0, 3), min_size=2, max_size=5),
    name=st.sampled_from(StrategyName),
)
def test_hosts_of_any_status_get_a_plan_or_a_reason(
    statuses: list[str], homes: list[int], name: StrategyName
) -> None:
    hosts = [host(f"h{at}", status=status) for at, status in enumerate(statuses)]
    vms = [vm(f"v{at}", f"h{home % len(hosts)}") for at, home in enumerate(homes)]
    state = snapshot(*hosts, *vms, group("apart", APART, " ".join(one.id for one in vms)))
    plan = make_plan(state, CLUSTER, strategy=strategy(name, seed=1))
    up = {one.id for one in hosts if one.up}
    assert all(step.target in up for step in plan.steps)
    assert plan.steps or all(one.obstacles for one in plan.remaining)


_HOSTS = ("h0", "h1", "h2")
_VMS = ("a", "b", "c", "d")


def test_a_busy_host_is_relieved_by_a_vm_that_breaks_no_soft_group() -> None:
    found = ask_about("ovirt-enforcer simulate-policy --repair hard,soft", "balance-and-soft-group")
    assert "settles after 1 migration" in found.text
    assert "LOOP" not in found.text


def test_a_balance_keeps_a_vm_on_the_hosts_of_its_soft_group() -> None:
    soft = group("g", vms="a", hosts_rule=SOFT_TOGETHER, hosts="h0 h1")
    state = snapshot(*map(host, _HOSTS), vm("a", "h0"), soft)
    assert choose_move(state, [BalanceMove("a", ("h2", "h1"))]) == BalanceMove("a", ("h1",))


def _violations(state: Snapshot, name: str, place: str) -> dict[str, int]:
    """Of each soft group of a VM how many pairs should not be as they are, with the VM there."""
    where = {one.id: place if one.id == name else one.host for one in state.vms}
    found = {}
    for one in state.affinity_groups:
        if name in one.vms:
            pairs = [where[peer] == place for peer in one.vms if peer != name]
            found[one.id] = sum(together is not one.vms_rule.positive for together in pairs)
            if one.hosts_rule.enabled:
                found[f"{one.id} hosts"] = (place in one.hosts) is not one.hosts_rule.positive
    return found


@given(
    homes=st.lists(st.sampled_from(_HOSTS), min_size=4, max_size=4),
    rules=st.lists(
        st.tuples(
            st.sampled_from([SOFT_APART, SOFT_TOGETHER]),
            st.sets(st.sampled_from(_VMS), min_size=2),
            st.sampled_from([SOFT_APART, SOFT_TOGETHER]),
            st.sets(st.sampled_from(_HOSTS), max_size=2),
        ),
        max_size=3,
    ),
    moves=st.lists(
        st.tuples(st.sampled_from(_VMS), st.sets(st.sampled_from(_HOSTS), min_size=1)), max_size=4
    ),
)
def test_a_move_that_breaks_no_soft_group_comes_first(
    homes: list[str],
    rules: list[tuple[object, set[str], object, set[str]]],
    moves: list[tuple[str, set[str]]],
) -> None:
    groups = [
        group(f"g{at}", of_vms, " ".join(sorted(vms)), hosts_rule=of_hosts, hosts=" ".join(sorted(hosts)))
        for at, (of_vms, vms, of_hosts, hosts) in enumerate(rules)
    ]
    state = snapshot(*map(host, _HOSTS), *map(vm, _VMS, homes), *groups)
    proposed = [BalanceMove(name, tuple(sorted(hosts))) for name, hosts in moves]

    def harmless(name: str, place: str) -> bool:
        before, after = _violations(state, name, homes[_VMS.index(name)]), _violations(state, name, place)
        return all(after[key] <= before[key] for key in after)

    possible = [(one.vm, place) for one in proposed for place in one.hosts if harmless(one.vm, place)]
    chosen = choose_move(state, proposed)
    if possible:
        assert chosen.vm == possible[0][0]
        assert {(chosen.vm, place) for place in chosen.hosts} <= set(possible)
    else:
        assert chosen == (proposed[0] if proposed else None)


# -- What a change or a start would cost, asked before it is made.
def test_room_is_made_by_the_one_migration_that_does() -> None:
    found = ask_about("ovirt-enforcer make-room db-2", "make-room")
    assert "VM db-2 can start on host node2 after 1 migration, no fewer will do:" in found.text
    assert "  1. db-1 from node2 to " in found.text


def test_cpus_that_a_vm_has_for_itself_are_no_others() -> None:
    """14 of 16; the simulated engine counts as well."""
    why = "has 2 cores that are no VM's own, and VM x has more CPUs"
    assert f"h1    refused  {why}" in ask_about("ovirt-placement why x h1", "dedicated-cpus").text
    checked = ask_about("ovirt-placement ha-check", "dedicated-cpus")
    assert (checked.status, f"If h2 failed:\n  x: h1: {why}" in checked.text) == (1, True)
    state = state_file.load(STATES["dedicated-cpus"])
    assert set(filters.cpu(state, [state.vm_by_id["x"]], state.hosts)) == {"h1"}


def test_a_vm_that_is_down_and_could_start_nowhere_any_more_is_named() -> None:
    before = state_file.load(STATES["preview"])
    ids = {one.name: one for one in before.vms}
    vms = " ".join(ids[name].id for name in ("db-1", "db-2", "db-3"))
    apart = group("", APART, vms, name="db-apart", cluster=ids["db-1"].cluster)
    found = _previewed(before, apart)
    assert "  db-2, which is down, could start on no host any more" in list(lines(found))
    assert measures(found)["unplaced"] == 1


def _previewed(state: Snapshot, group: AffinityGroup) -> WhatIfDocument:
    change = changed_groups(state, (), [group])
    return preview(state, change, repair=frozenset({Repair.HARD}), deadline=NEVER)


def test_what_there_was_no_time_for_is_not_called_startable() -> None:
    before = snapshot(host("h1"), vm("a", "h1"), vm("b"), vm("c"))
    after = snapshot(host("h1"), vm("a", "h1"), vm("b"), vm("c"), group("g", APART, "a b c"))
    assert find_barred(before, after, CLUSTER, NEVER)[0] == ("b", "c")
    assert find_barred(before, after, CLUSTER, Deadline(lambda: 0.0)) == ((), 2)


def test_a_vm_that_could_not_start_before_either_is_no_news() -> None:
    parts = host("h1", free_mb=0), host("h2"), vm("a", "h1"), vm("big", needs_mb=1 << 20), vm("b")
    before = snapshot(*parts)
    after = snapshot(*parts, group("g", TOGETHER, "a b"), group("h", APART, "a big"))
    assert find_barred(before, after, CLUSTER, NEVER)[0] == ("b",)


def test_where_ranks_by_no_unit_that_the_policy_is_known_to_lack() -> None:
    vms = vm("a", "h1"), vm("n")
    together = group("g", SOFT_TOGETHER, "a n")
    known = cluster(scheduling_policy=SchedulingPolicy(weights={"HaReservationWeight": 1}))
    for of, ranks in ((known, {"HaReservationWeight"}), (cluster(), {"SoftAffinityWeight"})):
        state = snapshot(of, host("h1"), host("h2"), *vms, together)
        found = where(state, state.vm_by_id["n"]).hosts
        assert [{one.unit for one in each.weights} & {*ranks, "SoftAffinityWeight"} for each in found] == [
            ranks,
            ranks,
        ]


def test_a_preview_says_what_the_engine_has_not_counted_yet() -> None:
    parts = host("h1", memory_uncounted=True), host("h2"), vm("a", "h1"), vm("b", "h1")
    apart = group("g", APART, "a b")
    found = _previewed(snapshot(*parts), apart)
    (line,) = (one for one in lines(found) if "foreseen" in one)
    assert line.startswith(
        "  not known yet, and no migrations are foreseen: the engine has not counted the memory"
    )
    assert not found.clusters[0].moves
    assert not [one for one in lines(found) if "violates no rule" in one]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([0, 900, 1000, 4000])), max_size=6))
def test_no_more_is_believed_of_a_host_for_what_was_believed_before(readings: list[tuple[str, int]]) -> None:
    known: dict[str, Believed] = {}
    for now, (name, free_mb) in enumerate(readings):
        state = snapshot(host("h1", memory_mb=4096, free_mb=free_mb), vm(name, "h1", needs_mb=3072))
        (found,), (alone,) = believed(state, known, now).hosts, believed(state).hosts
        assert found.free_mb <= alone.free_mb
        assert alone.memory_uncounted or found == alone
