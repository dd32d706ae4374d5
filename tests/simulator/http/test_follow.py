"""`follow` expands links in place, as deep as asked, and fails where the engine's fails."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error

from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request


def test_groups_of_clusters_in_one_request(sdk: Connection) -> None:
    first, second = sdk.system_service().clusters_service().list(follow="affinity_groups")
    groups = {group.id: group for group in first.affinity_groups}
    assert set(groups) == {"apart", "near", "together"}
    assert [vm.id for vm in groups["together"].vms] == ["web1", "web2"]
    assert groups["together"].vms[0].name is None, "inline members are ids"
    assert list(second.affinity_groups) == []


def test_members_of_labels_in_one_request(sdk: Connection) -> None:
    backend, empty = sdk.system_service().affinity_labels_service().list(follow="vms,hosts")
    assert ([vm.id for vm in backend.vms], [host.id for host in backend.hosts]) == (
        ["db1", "idle"],
        ["host2"],
    )
    assert (list(empty.vms), list(empty.hosts)) == ([], [])


def test_several_levels(sdk: Connection) -> None:
    (cluster,) = (
        sdk.system_service()
        .clusters_service()
        .list(
            search="name=Default", follow="affinity_groups.vms,affinity_groups.host_labels,scheduling_policy"
        )
    )
    groups = {group.id: group for group in cluster.affinity_groups}
    assert [vm.name for vm in groups["together"].vms] == ["web1", "web2"]
    assert [label.name for label in groups["near"].host_labels] == ["backend"]
    assert cluster.scheduling_policy.name == "none"


def test_a_chain_through_a_reference(sdk: Connection) -> None:
    vm = (
        sdk.system_service()
        .vms_service()
        .vm_service("db1")
        .get(follow="disk_attachments.disk,host.tags,cluster")
    )
    assert vm.disk_attachments[0].disk.disk_profile.id == "fast"
    assert (vm.host.name, vm.cluster.name) == ("beta", "Default")


def test_statistics_of_all_hosts_and_vms(sdk: Connection) -> None:
    system = sdk.system_service()
    for entity in [
        *system.hosts_service().list(follow="statistics"),
        *system.vms_service().list(follow="statistics"),
    ]:
        assert len(entity.statistics) >= 13


def test_max_and_search_are_the_outer_collections_own(sdk: Connection) -> None:
    (vm,) = sdk.system_service().vms_service().list(search="name=web1", max=1, follow="statistics,tags")
    assert len(vm.statistics) > 1
    assert len(vm.tags) == 2


@pytest.mark.parametrize("follow", ["", ",", "."])
def test_empty_follow_is_ignored(server: Server, follow: str) -> None:
    assert request(f"{server.api_url}/vms?follow={follow}").body == request(f"{server.api_url}/vms").body


@pytest.mark.parametrize(
    ("path", "follow", "plain"),
    [
        ("vms", "disk_attachments.disk,nics", "diskattachments.disk,Nics"),
        ("vms", "disk_attachments", "Disk_Attachments_"),
        ("vms/db1", "affinity_labels", "affinityLabels"),
        ("clusters", "affinity_groups.vm_labels", "affinitygroups.VMLABELS"),
    ],
)
def test_underscores_and_capitals_do_not_count(server: Server, path: str, follow: str, plain: str) -> None:
    """The engine's LinkFollower drops underscores for links, and ignores case for setters."""
    expected, given = (request(f"{server.api_url}/{path}?follow={names}") for names in (follow, plain))
    assert (given.status, given.body) == (200, expected.body)
    assert given.body != request(f"{server.api_url}/{path}").body


def test_the_later_of_two_spellings_counts(sdk: Connection) -> None:
    """Each is followed by itself, and put in the place of what was there."""
    vm = sdk.system_service().vms_service().vm_service("db1")
    first, *_ = vm.get(follow="disk_attachments.disk,diskattachments").disk_attachments
    assert first.disk.name is None
    first, *_ = vm.get(follow="diskattachments,disk_attachments.disk").disk_attachments
    assert first.disk.name == "disk1"


@pytest.mark.parametrize(
    ("collection", "follow"),
    [
        ("vms", "nonsense"),
        ("vms", "host"),  # absent on VMs that are down
        ("vms", "statistics.nonsense"),
        ("vms", "cpu_profile"),
        ("hosts", "storages"),
        ("hosts", "fenceagents"),
        ("schedulingpolicies", "weights"),
        ("schedulingpolicies", "weight"),
        ("vms", "nics,%20tags"),  # a name that begins with a space
        ("vms", "nics,,tags"),
        ("vms", "nics..statistics"),
        ("vms", "_nics"),
        ("vms", "disk__attachments"),
    ],
)
def test_what_cannot_be_followed_fails_the_whole_request(
    server: Server, collection: str, follow: str
) -> None:
    reply = request(f"{server.api_url}/{collection}?follow={follow}")
    assert reply.status == 500
    assert reply.headers["content-type"].startswith("text/html")


def test_a_reference_can_be_followed_where_it_is_there(sdk: Connection) -> None:
    service = sdk.system_service().vms_service()
    assert service.list(search="name=web1", follow="host")[0].host.name == "alpha"
    with pytest.raises(Error, match="isn't the expected XML"):
        service.list(follow="host")


@pytest.mark.parametrize("path", ["affinitylabels?follow=vms.nics", "vms?follow=affinity_labels.vms.nics"])
def test_what_the_simulator_cannot_follow_it_refuses(server: Server, path: str) -> None:
    """An engine follows these; here a label's members are no more than their ids."""
    reply = request(f"{server.api_url}/{path}")
    assert (reply.status, reply.xml.findtext("reason")) == (501, "Not simulated")
