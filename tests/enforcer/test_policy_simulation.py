"""Clusters in which those who migrate VMs come to rest, and others in which they undo each other's work."""

import random
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from ovirt_enforcer.cli.main import main
from ovirt_enforcer.cli.plan import LOOP
from ovirt_enforcer.policy_actors import Actor, Actors, SimulatedCluster, balance_unit, best_host
from ovirt_enforcer.policy_simulation import (
    ClusterSimulation,
    SimulationOutcome,
    run,
    simulate,
    simulation_text,
)
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.model import AffinityGroup, SchedulingPolicy, Snapshot
from ovirt_placement.model.names import NamedGroup
from ovirt_placement.model.snapshot import STORED
from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from ovirt_placement.rules.engine_affinity import gains
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
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
from tests.configuration import write_configuration
from tests.examples import examples
from tests.placement.cli.setup.policies import unit_id
from tests.placement.planning.clusters import drawn
from tests.scenarios.stage import START, configured

BOTH = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}))
HOSTS = (host("h1"), host("h2"), host("h3"))
#: What the engine gives a cluster whose policy is `evenly_distributed`.
EVENLY = {"HighUtilization": "75", "CpuOverCommitDurationMinutes": "2"}

#: Two that must part, and a third that must be with both: the engine moves it to and fro.
SPLIT = snapshot(
    host("h1"),
    host("h2"),
    vm("a", "h1"),
    vm("b", "h2"),
    vm("c", "h1"),
    vm("d", "h2"),
    group("all of them", TOGETHER, "a b c"),
    group("these two", APART, "a b"),
    group("no matter", APART, "a d"),
    group("nor this", SOFT_APART, "c d"),
)


SOFT = group("soft", SOFT_TOGETHER, "a b")


def drawn_by(properties: dict[str, str], near: AffinityGroup = SOFT) -> tuple[Part, ...]:
    """Two busy VMs that a group keeps on a host which they make too hot."""
    return (
        cluster(scheduling_properties=properties),
        host("h1", cores=4, cpu_percent=90),
        host("h2", cores=4, cpu_percent=10),
        vm("a", "h1", usage_cpu_percent=80),
        vm("b", "h1", usage_cpu_percent=90, vcpus=2),
        near,
    )


def available(near: SchedulingPolicy | None) -> Snapshot:
    """Highly available VMs that a host group is satisfied on one host."""
    return snapshot(
        cluster(ha_reservation=True, scheduling_policy=near, policy={"vm_to_host_weight": 20}),
        *HOSTS,
        *(vm(name, "h1", ha=True) for name in "abcd"),
        group("near", vms="a b c d", hosts_rule=SOFT_TOGETHER, hosts="h1"),
    )


def ways(found: ClusterSimulation) -> list[tuple[str, str, str, Actor]]:
    """The migrations of a loop, reported by hand."""
    assert found.loop is not None
    return [(one.vm.id, one.from_.id, one.to.id, one.by) for one in found.loop.migrations]


PARTED = group("g", APART, "a b")


@pytest.mark.parametrize(
    ("parts", "migrations"),
    [
        ((*HOSTS, vm("a", "h1"), vm("b", "h1"), PARTED), 1),
        ((*HOSTS, vm("a", "h1"), vm("b", "h2"), PARTED), 0),
        ((*HOSTS, vm("a", "h1", status="migrating"), vm("b", "h2"), pending("a", "h2"), PARTED), 1),
        (
            (
                *(host("h1", free_mb=0), host("h2"), pending("gone", "h2")),
                *(vm("gone", "h1", status="migrating", needs_mb=2048), vm("a", "h2"), vm("b", "h2"), PARTED),
            ),
            1,
        ),
        # The engine takes a gain in either family, but the best host is the one that the heavier wants.
        (
            (
                cluster(policy={"vm_affinity_weight": 1, "vm_to_host_weight": 20}),
                *(*HOSTS, vm("a", "h1"), vm("b", "h2", migratable=False)),
                group("with b", SOFT_TOGETHER, "a b"),
                group("on h1", vms="a", hosts_rule=SOFT_TOGETHER, hosts="h1"),
            ),
            0,
        ),
        (drawn_by(EVENLY, group("hard", TOGETHER, "a b")), 0),
    ],
    ids=["repaired once", "satisfied", "arrives", "leaves", "the heavier of two families", "a hard group"],
)
def test_it_settles(parts: tuple[Part, ...], migrations: int) -> None:
    found = simulate(snapshot(*parts), CLUSTER)
    assert (found.outcome, found.migrations, found.loop) == (SimulationOutcome.SETTLED, migrations, None)


def test_groups_that_split_hosts_keep_the_engine_going_and_are_named_and_no_others() -> None:
    found = simulate(SPLIT, CLUSTER)
    assert found.outcome is SimulationOutcome.LOOP
    assert ways(found) == [("c", "h1", "h2", Actor.ENGINE), ("c", "h2", "h1", Actor.ENGINE)]
    assert found.loop is not None
    groups = {group.id for group in found.loop.groups}
    assert (groups, found.loop.groups_needed) == ({"all of them", "these two"}, True)


@pytest.mark.parametrize("gone", ["all of them", "these two"])
def test_without_one_of_the_groups_named_there_is_no_loop(gone: str) -> None:
    parts = [one for one in SPLIT.affinity_groups if one.id != gone]
    assert simulate(snapshot(*SPLIT.hosts, *SPLIT.vms, *parts), CLUSTER).outcome is SimulationOutcome.SETTLED


@pytest.mark.parametrize("properties", [{}, {**EVENLY, "LowUtilization": "20"}])
def test_without_a_balance_that_evens_out_load_there_is_no_loop(properties: dict[str, str]) -> None:
    found = simulate(snapshot(*drawn_by(properties)), CLUSTER)
    assert (found.outcome, found.migrations) == (SimulationOutcome.SETTLED, 0)
    assert Actor.BALANCE not in found.actors


HOT = snapshot(*drawn_by(EVENLY))


def test_a_soft_group_draws_a_vm_to_where_the_balance_takes_it_from() -> None:
    found = simulate(HOT, CLUSTER)
    assert ways(found) == [("a", "h1", "h2", Actor.BALANCE), ("a", "h2", "h1", Actor.ENGINE)]
    assert found.loop is not None
    assert found.loop.groups == (NamedGroup("soft", "soft"),)
    assert "OptimalForEvenDistribution" in found.loop.units
    assert "90 %" in found.loop.migrations[0].because
    assert "affinity group soft" in found.loop.migrations[1].because


def test_of_an_engine_the_cpu_use_is_read_by_which_its_balance_goes(tmp_path: Path) -> None:
    engine = Engine.from_snapshot(HOT, clock=START)
    engine.policies.update_cluster(CLUSTER, policy_name="evenly_distributed")
    with closing(serve(engine)) as server:
        config = str(write_configuration(tmp_path, server.api_url))
        assert main(["simulate-policy", "--config", config]) == LOOP


@pytest.mark.parametrize(("state", "outcome"), [(HOT, "UNSETTLED"), (SPLIT, "LOOP")])
def test_where_it_is_not_known_nothing_is_said_to_settle(state: Snapshot, outcome: str) -> None:
    unknown = [structs.replace(vm, usage_cpu_percent=None) for vm in state.vms]
    parts = cluster(scheduling_properties=EVENLY), *state.hosts, *unknown, *state.affinity_groups
    found = simulate(snapshot(*parts, vm("down", usage_cpu_percent=None)), CLUSTER)
    assert (found.outcome.name, Actor.BALANCE in found.actors) == (outcome, False)
    first, *others = sorted(vm.name for vm in unknown)
    names = f"{first} and {len(others)} more" if others else first
    assert found.doubt == f"the CPU use of {names} is not known, by which OptimalForEvenDistribution goes"


@pytest.mark.parametrize(("frozen", "by"), [("", Actor.ENFORCER), ("ab", Actor.ENGINE)])
def test_the_enforcer_draws_it_if_that_repairs_soft_rules_and_is_not_to_leave_it_alone(
    frozen: str, by: Actor
) -> None:
    found = simulate(HOT, CLUSTER, dict.fromkeys(frozen, "excluded"), options=BOTH)
    assert ways(found) == [("a", "h1", "h2", Actor.BALANCE), ("a", "h2", "h1", by)]


def test_hosts_for_highly_available_vms_against_spreading_them() -> None:
    found = simulate(available(SchedulingPolicy(balance="HaReservationBalance")), CLUSTER, options=BOTH)
    assert found.outcome is SimulationOutcome.LOOP
    assert {one[3] for one in ways(found)} == {Actor.BALANCE, Actor.ENFORCER}
    assert found.loop is not None
    assert found.loop.groups == (NamedGroup("near", "near"),)
    assert "host h1 has more than its share of highly available VMs" in (found.loop.migrations[0].because)
    another = simulate(available(None), CLUSTER, options=BOTH)
    assert another.outcome is SimulationOutcome.SETTLED


def test_legacy_labels_that_hold_a_group_apart_are_named_with_it() -> None:
    state = snapshot(
        cluster(compatibility="4.3"),
        host("h1"),
        host("h2"),
        vm("a", "h1"),
        vm("b", "h2"),
        vm("c", "h1"),
        group("all of them", TOGETHER, "a b c"),
        label("left", "a", "h1", implicit=True),
        label("right", "b", "h2", implicit=True),
        label("no matter", "c", "h1 h2", implicit=True),
    )
    loop = simulate(state, CLUSTER).loop
    assert loop is not None
    assert {group.id for group in loop.groups} == {"all of them", "left", "right"}


@pytest.mark.parametrize(
    ("bounds", "migrations", "out_of_time"),
    [({"most": 1}, 1, False), ({"deadline": Deadline(lambda: 0.0)}, 0, True)],
    ids=["of migrations", "of time"],
)
def test_a_bound_is_not_called_a_loop(bounds: Any, migrations: int, out_of_time: bool) -> None:
    found = simulate(SPLIT, CLUSTER, **bounds)
    assert (found.outcome, found.migrations) == (SimulationOutcome.UNSETTLED, migrations)
    assert (found.loop, found.out_of_time) == (None, out_of_time)


def test_nothing_is_said_to_settle_while_rules_are_not_known() -> None:
    parts = host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", APART, "a b")
    found = simulate(structs.replace(snapshot(*parts), unread=(STORED,)), CLUSTER)
    assert (found.outcome, found.migrations) == (SimulationOutcome.UNSETTLED, 0)
    assert simulation_text(found).endswith("): not known yet: " + found.doubt + ".")
    assert "could not be read from the store" in found.doubt


def test_the_engine_goes_on_in_a_cluster_that_is_upgraded() -> None:
    state = snapshot(cluster(upgrade_mode=True), *SPLIT.hosts, *SPLIT.vms, *SPLIT.affinity_groups)
    assert simulate(state, CLUSTER) == simulate(SPLIT, CLUSTER)


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 100_000))
def test_the_enforcer_alone_comes_to_rest_where_it_has_nothing_more_to_do(seed: int) -> None:
    state = drawn(seed, hosts=3, vms=5)
    alone = Actors((Actor.ENFORCER,), (), BOTH)
    went = run(state, CLUSTER, alone, 200, NEVER)
    assert went.outcome is SimulationOutcome.SETTLED
    assert run(went.end, CLUSTER, alone, 200, NEVER).migrations == ()


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 100_000), st.booleans())
def test_each_loop_leads_every_vm_back_and_the_same_state_comes_to_the_same_end(seed: int, hot: bool) -> None:
    state = drawn(seed, hosts=3, vms=5)
    if hot:
        evenly = cluster(scheduling_properties=EVENLY)
        state = snapshot(evenly, *state.hosts, *state.vms, *state.affinity_groups)
    found = simulate(state, CLUSTER, options=BOTH)
    assert found == simulate(state, CLUSTER, options=replace(BOTH))
    assert (found.outcome is SimulationOutcome.UNSETTLED) is bool(found.doubt and found.loop is None)
    if found.loop is not None:
        for name in {one.vm.id for one in found.loop.migrations}:
            legs = [one for one in found.loop.migrations if one.vm.id == name]
            assert all(one.to == other.from_ for one, other in pairwise([*legs, legs[0]]))
            assert len(legs) > 1


@pytest.mark.nightly
def test_a_loop_in_a_large_cluster_is_found_among_all_that_settles() -> None:
    dice = random.Random(1)
    rules = (TOGETHER, APART, SOFT_TOGETHER, SOFT_APART)
    vms = [f"v{number}" for number in range(10_000)]
    state = snapshot(
        *(host(f"h{number}", cores=64, free_mb=200_000) for number in range(1, 501)),
        *(vm(name, f"h{dice.randint(1, 500)}") for name in vms),
        *(group(f"g{number}", dice.choice(rules), " ".join(dice.sample(vms, 3))) for number in range(200)),
        *SPLIT.vms,
        *SPLIT.affinity_groups,
    )
    found = simulate(state, CLUSTER)
    assert {one[0] for one in ways(found)} == {"c"}
    assert found.loop is not None
    assert {group.id for group in found.loop.groups} == {"all of them", "these two"}


BUSY = snapshot(
    host("h1", cores=8, cpu_percent=50.3, free_mb=1000),
    host("h2", cores=8, threads=16, cpu_percent=99, free_mb=5000),
    host("h3", cores=8, cpu_percent=None),
    vm("a", "h1", usage_cpu_percent=33.3, vcpus=4, needs_mb=700),
    vm("b", "h1", usage_cpu_percent=None),
    group("g", APART, "a b"),
)


def move(simulated: SimulatedCluster, vm: str, target: str) -> None:
    simulated.move(Actor.ENGINE, [(vm, "")], target, (), (), "")


def test_cpu_and_memory_follow_a_vm() -> None:
    simulated = SimulatedCluster(BUSY, CLUSTER)
    move(simulated, "a", "h2")
    hosts = simulated.snapshot.host_by_id
    assert (hosts["h1"].free_mb, hosts["h2"].free_mb) == (1700, 4300)
    assert hosts["h1"].cpu_percent == 50.3 - 33.3 * 4 / 8
    assert hosts["h2"].cpu_percent == 100  # 99 + 33.3 x 4 / 16: no more than all of it


def test_hosts_are_asked_about_by_their_ids_as_the_engine_does() -> None:
    names = ("h3", "h1", "h2")
    state = snapshot(*(host(name, status="maintenance" if name == "h2" else "up") for name in names))
    assert SimulatedCluster(state, CLUSTER).hosts == ("h1", "h3")


def test_there_and_back_is_where_it_was() -> None:
    simulated = SimulatedCluster(BUSY, CLUSTER)
    for target in ("h2", "h3", "h1"):
        move(simulated, "a", target)
    assert (simulated.snapshot.hosts, simulated.snapshot.vms) == (BUSY.hosts, BUSY.vms)
    assert simulated.placement == SimulatedCluster(BUSY, CLUSTER).placement


def test_what_is_violated_follows_too() -> None:
    simulated = SimulatedCluster(BUSY, CLUSTER)
    assert [constraint.groups for _, constraint in simulated.violated()] == [("g",)]
    move(simulated, "a", "h3")
    assert simulated.violated() == []
    move(simulated, "b", "h3")
    assert [constraint.groups for _, constraint in simulated.violated(("a",))] == [("g",)]


def test_the_engine_takes_a_gain_in_either_family() -> None:
    state = snapshot(
        cluster(policy={"vm_affinity_weight": 1, "vm_to_host_weight": 20}),
        host("h1"),
        host("h2"),
        vm("a", "h1"),
        vm("b", "h2"),
        group("together", SOFT_TOGETHER, "a b"),
        group("on h1", vms="a", hosts_rule=SOFT_TOGETHER, hosts="h1"),
    )
    assert gains(state, "a", "h2")


def test_the_engine_parts_no_crowd_with_a_member_that_cannot_move() -> None:
    """Ours does: so only where it may not is the group left as it is."""
    state = snapshot(
        host("h1"), host("h2"), vm("a", "h1", migratable=False), vm("b", "h1"), group("g", APART, "a b")
    )
    assert simulate(state, CLUSTER).migrations == 1
    assert simulate(state, CLUSTER, {"b": "excluded"}).migrations == 0


@pytest.mark.parametrize(
    ("ours", "engines"),
    [
        ("SoftAffinityWeight", "vm_affinity_weight"),
        ("HostAffinityWeight", "vm_to_host_weight"),
        ("HaReservationWeight", "ha_weight"),
    ],
)
@pytest.mark.parametrize(
    ("factors", "chosen"), [((2, 0), "roomy"), ((0, 2), "roomy"), ((2, 2), "near"), ((4, 0), "near")]
)
def test_both_count_against_the_other_weights(
    ours: str, engines: str, factors: tuple[int, int], chosen: str
) -> None:
    """Memory speaks for one host, with the factor 3, and each of the rules for the other."""
    state = snapshot(
        cluster(
            ha_reservation=True,
            scheduling_policy=SchedulingPolicy(weights={ours: factors[0]}),
            policy={engines: factors[1], "even_memory_weight": 3},
        ),
        host("near", free_mb=8000),
        host("roomy", free_mb=60000),
        vm("new", "roomy", ha=True),
        vm("friend", "near"),
        vm("crowd", "roomy", ha=True),
        group("g", SOFT_TOGETHER, "new friend", hosts_rule=SOFT_TOGETHER, hosts="near"),
    )
    assert best_host(state, state.vm_by_id["new"], ("near", "roomy")) == chosen


@pytest.mark.parametrize(
    ("unit", "known"), [("OptimalForEvenDistribution", "OptimalForEvenDistribution"), ("None", None)]
)
def test_it_takes_part_under_its_name(unit: str, known: str | None, tmp_path: Path) -> None:
    engine = Engine.from_snapshot(snapshot(host("h1"), vm("a", "h1")), clock=START)
    policy = engine.policies.add("theirs")
    engine.policies.attach("balances", policy.id, unit_id(engine, unit))
    engine.policies.update_cluster(CLUSTER, policy_name="theirs")
    with (
        closing(serve(engine)) as server,
        EngineConnection(configured(tmp_path, server.api_url, {}).engine) as connection,
    ):
        (found,) = read_snapshot(connection).clusters
    assert "HighUtilization" not in found.scheduling_properties
    assert balance_unit(found) == known
