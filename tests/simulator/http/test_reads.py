"""The SDK lists and gets everything that the state holds, as it stands there."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, NotFoundError, types

from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request
from tests.simulator.http.world import WORLD

GIB = 1 << 30


def test_the_root_says_which_engine_this_is(sdk: Connection) -> None:
    api = sdk.system_service().get()
    assert (api.product_info.version.major, api.product_info.version.minor) == (4, 5)
    assert sdk.test()


def test_clusters(sdk: Connection) -> None:
    first, second = sdk.system_service().clusters_service().list()
    assert (first.id, first.name, second.name) == ("cluster1", "Default", "Second <&>")
    assert (first.ha_reservation, second.ha_reservation) == (True, False)
    assert (first.version.major, first.version.minor) == (4, 6)
    assert first.memory_policy.over_commit.percent == 150
    assert first.threads_as_cores is True
    assert first.data_center.id == "dc1"
    assert first.upgrade_in_progress is False
    assert [(each.name, each.value) for each in first.custom_scheduling_policy_properties] == [
        ("HighUtilization", "80")
    ]
    policy = sdk.follow_link(first.scheduling_policy)
    assert policy.name == "none"


def test_hosts(sdk: Connection) -> None:
    hosts = {host.id: host for host in sdk.system_service().hosts_service().list()}
    assert list(hosts) == ["host1", "host2", "far", "host3"], "by name"
    alpha = hosts["host1"]
    assert (alpha.name, alpha.status, alpha.cluster.id) == ("alpha", types.HostStatus.UP, "cluster1")
    assert (alpha.memory, alpha.max_scheduling_memory) == (64 * GIB, 32 * GIB)
    topology = alpha.cpu.topology
    assert (topology.sockets * topology.cores, topology.sockets * topology.cores * topology.threads) == (
        16,
        32,
    )
    assert hosts["host3"].status == types.HostStatus.MAINTENANCE


def test_vms(sdk: Connection) -> None:
    vms = {vm.id: vm for vm in sdk.system_service().vms_service().list()}
    assert set(vms) == {vm.id for vm in WORLD.vms}
    for known in WORLD.vms:
        shown = vms[known.id]
        topology = shown.cpu.topology
        assert (shown.name, shown.status.value, shown.cluster.id) == (known.name, known.status, known.cluster)
        assert (shown.host.id if shown.host else None) == known.host
        assert shown.memory == known.memory_mb << 20
        assert shown.memory_policy.guaranteed == known.guaranteed_mb << 20
        assert topology.sockets * topology.cores * topology.threads == known.vcpus
        assert shown.high_availability.enabled == known.ha
        assert shown.high_availability.priority == known.ha_priority
        assert shown.run_once is (False if known.host else None)
    assert [(each.name, each.value) for each in vms["web1"].custom_properties] == [("k", "<v>")]


def test_where_a_vm_may_run(sdk: Connection) -> None:
    vms = {vm.id: vm for vm in sdk.system_service().vms_service().list()}
    affinity = {vm_id: vm.placement_policy.affinity.value for vm_id, vm in vms.items()}
    assert affinity["web1"] == "migratable"
    assert affinity["web2"] == "migratable"
    assert [host.id for host in vms["web2"].placement_policy.hosts] == ["host2", "host1"]
    assert affinity["web3"] == "user_migratable"
    assert affinity["db1"] == "pinned"
    assert vms["web1"].placement_policy.hosts is None
    assert vms["Engine"].origin == "managed_hosted_engine"
    assert vms["web1"].origin == "ovirt"


def test_tags(sdk: Connection) -> None:
    system = sdk.system_service()
    web1 = system.vms_service().vm_service("web1").tags_service().list()
    assert sorted(tag.name for tag in web1) == ["blue", "red"]
    assert [tag.name for tag in system.hosts_service().host_service("host1").tags_service().list()] == ["ssd"]


def test_groups_have_their_members_inline(sdk: Connection) -> None:
    service = sdk.system_service().clusters_service().cluster_service("cluster1").affinity_groups_service()
    groups = {group.id: group for group in service.list()}
    assert list(groups) == ["apart", "near", "together"]
    apart, near = groups["apart"], groups["near"]
    assert [vm.id for vm in apart.vms] == ["web1", "web3"]
    assert [each.id for each in apart.vm_labels] == ["backend"]
    assert (apart.priority, apart.positive, apart.enforcing) == (2.5, False, True)
    assert (apart.vms_rule.enabled, apart.vms_rule.positive, apart.vms_rule.enforcing) == (True, False, True)
    assert (near.vms_rule.enabled, near.vms_rule.positive, near.positive) == (False, False, None)
    assert (near.hosts_rule.enabled, near.hosts_rule.positive, near.hosts_rule.enforcing) == (
        True,
        True,
        False,
    )
    assert ([host.id for host in near.hosts], [each.id for each in near.host_labels]) == (
        ["host1", "host2"],
        ["backend"],
    )
    assert {name: group.broken for name, group in groups.items()} == {
        "apart": True,
        "near": False,
        "together": True,
    }


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


def test_labels(sdk: Connection) -> None:
    system = sdk.system_service()
    labels = {label.name: label for label in system.affinity_labels_service().list()}
    assert set(labels) == {"backend", "empty"}
    assert [vm.id for vm in sdk.follow_link(labels["backend"].vms)] == ["db1", "idle"]
    assert [host.id for host in sdk.follow_link(labels["backend"].hosts)] == ["host2"]


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


def test_networks_and_data_centers(sdk: Connection) -> None:
    system = sdk.system_service()
    assert [network.name for network in system.networks_service().list()] == ["ovirtmgmt", "storage"]
    (profile,) = system.vnic_profiles_service().list()
    assert (profile.name, profile.network.id) == ("mgmt", "net1")
    (data_center,) = system.data_centers_service().list()
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
