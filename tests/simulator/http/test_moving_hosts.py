"""Clusters come, and hosts move to others and go."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types

from ovirt_simulator.core.engine import Engine
from tests.simulator.core.engines import codes


def test_a_cluster_is_added(sdk: Connection, engine: Engine) -> None:
    clusters = sdk.system_service().clusters_service()
    center = types.DataCenter(name="DC")
    added = clusters.add(types.Cluster(name="Third", description="new", data_center=center))
    assert (added.description, added.data_center.id) == ("new", "dc1")
    assert sdk.follow_link(added.scheduling_policy).name == "none"
    assert codes(engine) == [809]
    for cluster, words in (
        (types.Cluster(name="Third", data_center=center), "already in use"),
        (types.Cluster(name="x"), "dataCenter.name|id"),
        (types.Cluster(name="x", data_center=types.DataCenter(name="nowhere")), "nowhere"),
    ):
        with pytest.raises(Error, match=words):
            clusters.add(cluster)


def test_a_host_moves_to_another_cluster_in_maintenance(sdk: Connection, engine: Engine) -> None:
    hosts = sdk.system_service().hosts_service()
    second = types.Host(cluster=types.Cluster(name="Second <&>"))
    with pytest.raises(Error, match="switch Host to Maintenance") as caught:
        hosts.host_service("host1").update(second)
    assert caught.value.code == 409
    assert hosts.host_service("host3").update(second).cluster.id == "cluster2"
    assert codes(engine) == [43]
    hosts.host_service("host3").activate()
    engine.advance(60)
    assert engine.queries.host("host3").status == "up"


def test_a_removed_host_is_forgotten_by_all(sdk: Connection, engine: Engine) -> None:
    system = sdk.system_service()
    hosts = system.hosts_service()
    with pytest.raises(Error, match="Host is operational"):
        hosts.host_service("host1").remove()
    update = system.vms_service().vm_service("spare").update
    bound = types.VmPlacementPolicy(affinity=types.VmAffinity.PINNED, hosts=[types.Host(id="host3")])
    update(types.Vm(placement_policy=bound))
    with pytest.raises(Error, match="run specifically only on this Host: spare"):
        hosts.host_service("host3").remove()
    preferred = types.VmPlacementPolicy(affinity=types.VmAffinity.MIGRATABLE, hosts=bound.hosts)
    update(types.Vm(placement_policy=preferred))
    group = system.clusters_service().cluster_service("cluster1").affinity_groups_service()
    group.group_service("near").hosts_service().add(types.Host(id="host3"))
    labels = system.affinity_labels_service().label_service("backend")
    labels.hosts_service().add(types.Host(id="host3"))
    hosts.host_service("host3").remove()
    assert codes(engine)[-1] == 44
    state = engine.snapshot()
    holders = (*state.affinity_groups, *state.affinity_labels)
    assert not any("host3" in one.hosts for one in holders)
    assert not any("host3" in vm.pinned_hosts for vm in state.vms)
    engine.advance(600)
    with pytest.raises(NotFoundError):
        hosts.host_service("host3").remove()
