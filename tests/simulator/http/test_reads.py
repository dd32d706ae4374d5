"""The SDK lists and gets everything that the state holds, as it stands there."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from ovirtsdk4 import Connection, NotFoundError, types

from ovirt_placement.engine.topology import read_snapshot
from ovirt_simulator.http.server import Server
from tests.placement.engine_server import connected
from tests.simulator.http.plain import request
from tests.simulator.http.world import WORLD

#: What an engine measures or adds is not as it was given.
OWN = {"cpu_percent", "usage_cpu_percent", "usage_mem_percent", "video_mb", "spm", "measured", "policy"}


def given(one: Any) -> dict[str, Any]:
    """What is said of it, as a state has it."""
    known = {name: value for name, value in msgspec.structs.asdict(one).items() if name not in OWN}
    if "tags" in known:
        known["tags"] = sorted(known["tags"])
    return {name: value for name, value in known.items() if value is not None or name == "host"}


def test_the_root_says_which_engine_this_is(sdk: Connection) -> None:
    api = sdk.system_service().get()
    assert (api.product_info.version.major, api.product_info.version.minor) == (4, 5)
    assert sdk.test()


@pytest.mark.parametrize(
    "kind", ["clusters", "hosts", "vms", "affinity_groups", "affinity_labels", "networks", "vnic_profiles"]
)
def test_what_placement_reads_is_what_the_engine_was_given(server: Server, kind: str) -> None:
    """Its reader is checked by a real engine's answers: tests/placement/engine/test_topology.py."""
    with connected(server.api_url) as connection:
        read = read_snapshot(connection, devices=True)
    found = {one.id: given(one) for one in getattr(read, kind)}
    for known in getattr(WORLD, kind):
        assert given(known).items() <= found.pop(known.id).items(), known
    assert found == {}


def test_clusters_and_hosts(sdk: Connection) -> None:
    system = sdk.system_service()
    first, _ = system.clusters_service().list()
    assert sdk.follow_link(first.scheduling_policy).name == "none"
    hosts = system.hosts_service().list()
    assert [host.id for host in hosts] == ["host1", "host2", "far", "host3"], "by name"


def test_groups_have_their_members_inline(sdk: Connection) -> None:
    service = sdk.system_service().clusters_service().cluster_service("cluster1").affinity_groups_service()
    groups = {group.id: group for group in service.list()}
    assert list(groups) == ["apart", "near", "together"]
    apart, near = groups["apart"], groups["near"]
    assert (apart.positive, apart.enforcing, near.positive) == (False, True, None)
    assert [host.id for host in near.hosts] == ["host1", "host2"]
    assert [group.broken for group in groups.values()] == [True, False, True]


def test_a_groups_member_lists_have_names(sdk: Connection) -> None:
    groups = sdk.system_service().clusters_service().cluster_service("cluster1").affinity_groups_service()
    near = groups.group_service("near")
    assert [(vm.id, vm.name) for vm in near.vms_service().list()] == [("db1", "db1")]
    assert [(host.id, host.name) for host in near.hosts_service().list()] == [
        ("host1", "alpha"),
        ("host2", "beta"),
    ]
    assert [label.name for label in near.host_labels_service().list()] == ["backend"]


def test_any_cluster_gives_a_group_but_lists_only_its_own(sdk: Connection) -> None:
    second = sdk.system_service().clusters_service().cluster_service("cluster2").affinity_groups_service()
    assert second.list() == []
    assert second.group_service("apart").get().cluster.id == "cluster1"


def test_policies_and_units(sdk: Connection) -> None:
    system = sdk.system_service()
    policies = {policy.name: policy for policy in system.scheduling_policies_service().list()}
    none = system.scheduling_policies_service().policy_service(policies["none"].id)
    units = {unit.id: unit for unit in system.scheduling_policy_units_service().list()}
    assert policies["none"].locked is True
    filters = {units[each.scheduling_policy_unit.id].name for each in none.filters_service().list()}
    assert {"Memory", "VmAffinityGroups"} <= filters
    factors = {units[each.id].name: each.factor for each in none.weights_service().list()}
    assert factors["PreferredHosts"] == 99
    (balance,) = none.balances_service().list()
    assert units[balance.id].type == types.PolicyUnitType.LOAD_BALANCING


def test_data_centers(sdk: Connection) -> None:
    (data_center,) = sdk.system_service().data_centers_service().list()
    assert (data_center.name, data_center.status) == ("DC", types.DataCenterStatus.UP)


@pytest.mark.parametrize(
    "collection", ["vms", "hosts", "clusters", "affinitylabels", "jobs", "schedulingpolicies"]
)
def test_what_is_not_there_is_404_with_an_empty_body(server: Server, collection: str) -> None:
    reply = request(f"{server.api_url}/{collection}/none")
    assert (reply.status, reply.body) == (404, b"")


def test_the_sdk_says_not_found(sdk: Connection) -> None:
    with pytest.raises(NotFoundError) as caught:
        sdk.system_service().vms_service().vm_service("none").get()
    assert caught.value.code == 404
