"""What a host bears when VMs come and go; and how the engine itself decides, which ours improves on."""

from __future__ import annotations

from pathlib import Path

import pytest

from ovirt_enforcer.policy_actors import Actor, SimulatedCluster, balance_unit, best_host
from ovirt_enforcer.policy_simulation import simulate
from ovirt_placement.engine.connection.client import connect
from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.model import SchedulingPolicy
from ovirt_placement.rules.engine_enforcement import gains
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import APART, CLUSTER, SOFT_TOGETHER, cluster, group, host, snapshot, vm
from tests.placement.cli.setup.policies import unit_id
from tests.scenarios.stage import START, configured

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
    assert simulated.snapshot.hosts == BUSY.hosts
    assert simulated.snapshot.vms == BUSY.vms
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
    engine.policies.set_balance(policy.id, unit_id(engine, unit))
    engine.policies.update_cluster(CLUSTER, policy_name="theirs")
    server = serve(engine)
    with connect(configured(tmp_path, server.api_url, {}).engine) as connection:
        (found,) = read_snapshot(connection).clusters
    server.close()
    assert "HighUtilization" not in found.scheduling_properties
    assert balance_unit(found) == known
