"""`follow` expands links in place, as deep as asked, and fails where the engine's fails."""

import pytest
from ovirtsdk4.services import SystemService

from tests.simulator.http.plain import Api


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
