"""The SDK lists and gets everything that the state holds, as it stands there, and follows its links."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from lxml import etree
from ovirtsdk4 import Connection
from ovirtsdk4.services import SystemService

from ovirt_placement.engine.topology import read_snapshot
from ovirt_simulator.http.server import Server
from tests.paths import RECORDING
from tests.placement.engine_server import connected
from tests.simulator.http.plain import Api
from tests.simulator.http.world import WORLD

#: What an engine measures or adds is not as it was given.
OWN = {"cpu_percent", "usage_cpu_percent", "usage_mem_percent", "video_mb", "spm", "measured", "policy"}


def given(one: Any) -> dict[str, Any]:
    """What is said of it, as a state has it."""
    known = {name: value for name, value in msgspec.structs.asdict(one).items() if name not in OWN}
    if "tags" in known:
        known["tags"] = sorted(known["tags"])
    return {name: value for name, value in known.items() if value is not None or name == "host"}


def test_the_root_says_which_engine_this_is(sdk: Connection, system: SystemService) -> None:
    api = system.get()
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


def test_clusters_and_hosts(sdk: Connection, system: SystemService) -> None:
    first, _ = system.clusters_service().list()
    assert sdk.follow_link(first.scheduling_policy).name == "none"
    hosts = system.hosts_service().list()
    assert [host.id for host in hosts] == ["host1", "host2", "far", "host3"], "by name"


def test_groups_have_their_members_inline(system: SystemService) -> None:
    service = system.clusters_service().cluster_service("cluster1").affinity_groups_service()
    groups = {group.id: group for group in service.list()}
    assert list(groups) == ["apart", "near", "together"]
    apart, near = groups["apart"], groups["near"]
    assert near.vms[0].name is None, "inline members are ids"
    assert (apart.positive, apart.enforcing, near.positive) == (False, True, None)
    assert [host.id for host in near.hosts] == ["host1", "host2"]
    assert [group.broken for group in groups.values()] == [True, False, True]


def test_a_groups_member_lists_have_names(system: SystemService) -> None:
    groups = system.clusters_service().cluster_service("cluster1").affinity_groups_service()
    near = groups.group_service("near")
    assert [(vm.id, vm.name) for vm in near.vms_service().list()] == [("db1", "db1")]
    hosts = [(host.id, host.name) for host in near.hosts_service().list()]
    assert hosts == [("host1", "alpha"), ("host2", "beta")]
    assert [label.name for label in near.host_labels_service().list()] == ["backend"]


def test_any_cluster_gives_a_group_but_lists_only_its_own(system: SystemService) -> None:
    second = system.clusters_service().cluster_service("cluster2").affinity_groups_service()
    assert (second.list(), second.group_service("apart").get().cluster.id) == ([], "cluster1")


# -- What is rendered has the names, order and nesting of a real engine's XML, and nothing invented.
#: What a 4.5 engine's mappers (ClusterMapper, ...) show and the recorded 4.2 does not, or another state.
NEWER: dict[str, set[str]] = {
    "vms": {
        "vm/cpu_pinning_policy",
        "vm/custom_properties",
        "vm/custom_properties/custom_property",
        "vm/custom_properties/custom_property/name",
        "vm/custom_properties/custom_property/value",
        "vm/instance_type",
        "vm/placement_policy/hosts",
        "vm/placement_policy/hosts/host",
    },
    "hosts": set(),
    "clusters": {"cluster/data_center", "cluster/upgrade_in_progress", "cluster/upgrade_percent_complete"},
    "datacenters": {"data_center/description"},
    "networks": set(),
    "vnicprofiles": set(),
}


def paths(root: etree._Element) -> set[str]:
    """Paths of all elements below the items of a collection; links and actions by their rel."""
    found = set()
    for item in root:
        for node in item.iter(etree.Element):
            names = [step(each) for each in (node, *node.iterancestors()) if each is not root]
            found.add("/".join(reversed(names)))
    return found


def step(node: etree._Element) -> str:
    return f"{node.tag}[{node.get('rel')}]" if node.tag == "link" else str(node.tag)


def order(root: etree._Element) -> Iterator[list[str]]:
    """The names of each item's children, in order, each once."""
    for item in root:
        yield list(dict.fromkeys(str(child.tag) for child in item.iterchildren(etree.Element)))


@pytest.mark.parametrize("collection", sorted(NEWER))
def test_nothing_is_invented(api: Api, collection: str) -> None:
    recorded = paths(etree.parse(RECORDING / f"{collection}.xml").getroot())
    shown = paths(api(f"{collection}").xml)
    assert shown - recorded <= NEWER[collection]
    assert shown


@pytest.mark.parametrize("collection", sorted(NEWER))
def test_the_order_is_the_recordings(api: Api, collection: str) -> None:
    known = list(order(etree.parse(RECORDING / f"{collection}.xml").getroot()))
    for shown in order(api(f"{collection}").xml):
        for recorded in known:
            common = [tag for tag in shown if tag in recorded]
            assert common == [tag for tag in recorded if tag in common]


def test_attributes_are_ids_and_addresses(api: Api) -> None:
    for collection in sorted(NEWER):
        for node in api(f"{collection}").xml.iter(etree.Element):
            assert set(node.attrib) <= {"href", "id", "rel"}
            href = node.get("href")
            assert href is None or href.startswith("/ovirt-engine/api/")


# -- `follow` expands links in place, as deep as asked, and fails where the engine's fails.
def test_several_levels(system: SystemService) -> None:
    follow = "affinity_groups.vms,affinity_groups.host_labels,scheduling_policy"
    (cluster,) = system.clusters_service().list(search="name=Default", follow=follow)
    groups = {group.id: group for group in cluster.affinity_groups}
    assert [vm.name for vm in groups["together"].vms] == ["web1", "web2"]
    assert [label.name for label in groups["near"].host_labels] == ["backend"]
    assert cluster.scheduling_policy.name == "none"


def test_a_chain_through_a_reference(system: SystemService) -> None:
    vm = system.vms_service().vm_service("db1").get(follow="disk_attachments.disk,host.tags,cluster")
    assert vm.disk_attachments[0].disk.disk_profile.id == "fast"
    assert (vm.host.name, vm.cluster.name) == ("beta", "Default")


def test_max_and_search_are_the_outer_collections_own(system: SystemService) -> None:
    (vm,) = system.vms_service().list(search="name=web1", max=1, follow="statistics,tags")
    assert len(vm.statistics) > 1
    assert len(vm.tags) == 2


@pytest.mark.parametrize("follow", ["", ",", "."])
def test_empty_follow_is_ignored(api: Api, follow: str) -> None:
    assert api(f"vms?follow={follow}").body == api("vms").body


@pytest.mark.parametrize(
    ("collection", "follow"),
    [
        ("vms", "nonsense"),
        ("vms", "host"),  # absent on VMs that are down
        ("vms", "statistics.nonsense"),
        ("vms", "cpu_profile"),
        ("hosts", "storages"),
        ("schedulingpolicies", "weights"),
        ("schedulingpolicies", "weight"),
    ],
)
def test_what_cannot_be_followed_fails_the_whole_request(api: Api, collection: str, follow: str) -> None:
    reply = api(f"{collection}?follow={follow}")
    assert reply.status == 500
    assert reply.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("path", ["affinitylabels?follow=vms.nics", "vms?follow=affinity_labels"])
def test_what_the_simulator_cannot_follow_it_refuses(api: Api, path: str) -> None:
    """An engine follows these; here a label's members are no more than their ids."""
    reply = api(f"{path}")
    assert (reply.status, reply.xml.findtext("reason")) == (501, "Not simulated")
