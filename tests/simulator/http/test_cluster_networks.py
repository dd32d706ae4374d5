"""Networks and MAC pools of clusters."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types

from ovirt_simulator.core.engine import Engine
from tests.simulator.core.engines import codes


def test_a_new_cluster_gets_its_networks_one_by_one(sdk: Connection, engine: Engine) -> None:
    clusters = sdk.system_service().clusters_service()
    old = clusters.cluster_service("cluster1").networks_service()
    assert [network.id for network in old.list()] == ["net1", "net2"]
    with pytest.raises(Error, match="already attached to Cluster"):
        old.add(types.Network(name="storage"))
    new = clusters.add(types.Cluster(name="new", data_center=types.DataCenter(name="DC")))
    networks = clusters.cluster_service(new.id).networks_service()
    assert [(network.name, network.required) for network in networks.list()] == [("ovirtmgmt", True)]
    added = networks.add(types.Network(id="net2", required=False))
    assert (added.name, added.required, added.cluster.id) == ("storage", False, new.id)
    service = networks.network_service("net2")
    assert service.update(types.Network(required=True)).required
    service.remove()
    with pytest.raises(NotFoundError):
        service.get()
    with pytest.raises(Error, match="is mandatory and cannot be removed"):
        networks.network_service("net1").remove()
    assert codes(engine) == [809, 946, 948]


def test_a_mac_pool_is_added_given_to_a_cluster_and_removed(sdk: Connection, engine: Engine) -> None:
    system = sdk.system_service()
    pools, cluster = system.mac_pools_service(), system.clusters_service().cluster_service("cluster1")
    with pytest.raises(Error, match="at least one MAC address range"):
        pools.add(types.MacPool(name="mine"))
    ranges = [types.Range(from_="02:00:00:00:00:00", to="02:00:00:01:00:00")]
    pool = pools.add(types.MacPool(name="mine", ranges=ranges))
    assert (pool.default_pool, pool.ranges[0].to) == (False, "02:00:00:01:00:00")
    service = pools.mac_pool_service(pool.id)
    assert service.update(types.MacPool(description="new")).ranges[0].from_ == "02:00:00:00:00:00"
    assert cluster.update(types.Cluster(mac_pool=types.MacPool(id=pool.id))).mac_pool.id == pool.id
    with pytest.raises(Error, match=r"Several clusters \(1\) are using this MAC Pool"):
        service.remove()
    default = next(one for one in pools.list() if one.default_pool)
    with pytest.raises(Error, match="Default MAC Pool cannot be removed"):
        pools.mac_pool_service(default.id).remove()
    cluster.update(types.Cluster(mac_pool=types.MacPool(id=default.id)))
    service.remove()
    assert codes(engine) == [10700, 10702, 811, 811, 10704]
