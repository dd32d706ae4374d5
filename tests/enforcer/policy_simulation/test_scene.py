"""What a host bears when VMs come and go; and how the engine itself decides, which ours improves on."""

from __future__ import annotations

from ovirt_enforcer.policy_simulation.scene import Scene
from ovirt_enforcer.policy_simulation.simulation import simulate
from ovirt_placement.rules.engine_enforcement.gain import gains
from tests.builders import APART, CLUSTER, SOFT_TOGETHER, cluster, group, host, snapshot, vm

BUSY = snapshot(
    host("h1", cores=8, cpu_percent=50.3, free_mb=1000),
    host("h2", cores=8, threads=16, cpu_percent=99, free_mb=5000),
    host("h3", cores=8, cpu_percent=None),
    vm("a", "h1", usage_cpu_percent=33.3, vcpus=4, needs_mb=700),
    vm("b", "h1", usage_cpu_percent=None),
    group("g", APART, "a b"),
)


def test_cpu_and_memory_follow_a_vm() -> None:
    scene = Scene(BUSY, CLUSTER)
    scene.move(("a",), "h2")
    hosts = scene.snapshot.host_by_id
    assert (hosts["h1"].free_mb, hosts["h2"].free_mb) == (1700, 4300)
    assert hosts["h1"].cpu_percent == 50.3 - 33.3 * 4 / 8
    assert hosts["h2"].cpu_percent == 100  # 99 + 33.3 x 4 / 16: no more than all of it


def test_hosts_are_asked_about_by_their_ids_as_the_engine_does() -> None:
    names = ("h3", "h1", "h2")
    state = snapshot(*(host(name, status="maintenance" if name == "h2" else "up") for name in names))
    assert Scene(state, CLUSTER).hosts == ("h1", "h3")


def test_there_and_back_is_where_it_was() -> None:
    scene = Scene(BUSY, CLUSTER)
    for target in ("h2", "h3", "h1"):
        scene.move(("a",), target)
    assert scene.snapshot.hosts == BUSY.hosts
    assert scene.snapshot.vms == BUSY.vms
    assert scene.placement == Scene(BUSY, CLUSTER).placement


def test_what_is_violated_follows_too() -> None:
    scene = Scene(BUSY, CLUSTER)
    assert [one.constraint.groups for one in scene.violated()] == [("g",)]
    scene.move(("a",), "h3")
    assert scene.violated() == []
    scene.move(("b",), "h3")
    assert [one.constraint.groups for one in scene.violated_of(("a",))] == [("g",)]


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
    assert not gains(state, "a", "h2")
    assert gains(state, "a", "h2", as_engine=True)


def test_the_engine_parts_no_crowd_with_a_member_that_cannot_move() -> None:
    """Ours does: so only where it may not is the group left as it is."""
    state = snapshot(
        host("h1"), host("h2"), vm("a", "h1", migratable=False), vm("b", "h1"), group("g", APART, "a b")
    )
    assert simulate(state, CLUSTER).migrations == 1
    assert simulate(state, CLUSTER, {"b": "excluded"}).migrations == 0
