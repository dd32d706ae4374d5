"""Searches of each kind of object, and by what other objects say of it, find what they say.

What is expected here was read in the engine's `searchbackend`, oddities included.
"""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request
from tests.simulator.http.searching import ask, ids


@pytest.mark.parametrize(
    ("collection", "search", "found"),
    [
        ("vms", "host=beta", "db1 manual web2"),
        ("vms", "host.cluster=Second* or hosts.name=beta", "db1 manual remote web2"),
        ("vms", "Hosts.name=beta and name!=db1", "manual web2"),
        ("vms", "host.status=maintenance", ""),
        ("vms", "host.name!=alpha and cluster=Default", "db1 idle manual spare web2"),
        ("vms", "host.tag=ssd", "Engine silent stuck web1 web3"),
        ("vms", "template.name=tpl1", "db1"),
        ("vms", "template=Blank and name=web*", "web1 web2 web3"),
        ("vms", "vnic.network_name=ovirtmgmt", "db1"),
        ("hosts", "vm.name=web1", "host1"),
        ("hosts", "vms.status=paused", "host1"),
        ("hosts", "vm.name=web1 and vm.name=web3", ""),
        ("hosts", "vm.tag=red and status=up", "host1 host2"),
        ("hosts", "template=tpl1", "host2"),
        ("clusters", "datacenter.name=DC", "cluster1 cluster2"),
        ("clusters", "cluster_network.network_name=storage", "cluster1 cluster2"),
        ("datacenters", "Clusters.name=Default", "dc1"),
        ("datacenters", "cluster.name=nothing", ""),
        ("templates", "vms.name=db1", "tpl1"),
        ("templates", "hosts.name=beta", "00000000-0000-0000-0000-000000000000 tpl1"),
        ("disks", "datacenter.name=DC", "disk1 disk2"),
    ],
)
def test_what_other_objects_say(server: Server, collection: str, search: str, found: str) -> None:
    assert ids(server, collection, search) == found.split()


@pytest.mark.parametrize(
    ("collection", "search", "found"),
    [
        ("hosts", "status=maintenance or cluster=Second*", "far host3"),
        ("hosts", "id=host2", "host2"),
        ("hosts", "active_vms>3", "host1"),
        ("hosts", "tag=ssd", "host1"),
        ("hosts", "mem_usage>=0 and load>=0 and version=4.5*", "host1 host2 far host3"),
        ("hosts", "cpu_usage>34", "host1"),
        ("hosts", "type=rhel and update_available=false sortby name desc", "host3 far host2 host1"),
        ("clusters", 'name="Default"', "cluster1"),
        ("clusters", "compatibility_level=4.6", "cluster1"),
        ("datacenters", "status=up and local=false", "dc1"),
        ("networks", "name=stor*", "net2"),
        ("networks", "vmnetwork=true sortby name desc", "net2 net1"),
        ("templates", "name=tpl1", "tpl1"),
        ("instancetypes", "name=small", "small 00000005-0005-0005-0005-0000000002e6"),
        ("disks", "name=disk1", "disk1"),
        ("disks", "vm_names=db1 and number_of_vms=1", "disk1 disk2"),
        ("disks", "id=disk2", "disk2"),
        ("disks", "alias=nothing", ""),
    ],
)
def test_other_collections(server: Server, collection: str, search: str, found: str) -> None:
    assert sorted(ids(server, collection, search)) == sorted(found.split())


def test_tags_count_with_those_below_them_one_at_a_time(server: Server, sdk: Connection) -> None:
    tags = sdk.system_service().tags_service()
    colour = tags.add(types.Tag(name="colour"))
    tags.add(types.Tag(name="green", parent=types.Tag(id=colour.id)))
    sdk.system_service().vms_service().vm_service("idle").tags_service().add(types.Tag(name="green"))
    assert ids(server, "vms", "tag=colour") == ["idle"]
    assert ids(server, "vms", "tag=blue") == ["web1"]
    assert ids(server, "vms", "tag=b*e or tag=gr*") == ["idle", "web1"]
    assert ids(server, "vms", "tag=red and tag=blue") == [], "no tag is both"
    assert ids(server, "vms", "tag!=red and name=web*") == ["web1", "web3"], "blue is not red, none neither"
    assert ids(server, "vms", "tag=BLUE") == [], "here case always counts"
    assert ids(server, "vms", "tag=r.d and name=web2") == ["web2"], "a tag is a regular expression"
    assert ask(server, "vms", "tag=(").status == 400


def test_users_are_found_by_name_and_never_sorted(server: Server, sdk: Connection, engine: Engine) -> None:
    for name in ("alice", "bob", "carol@corp"):
        _grant(sdk, name)
    assert ids(server, "users", "usrname=bob@internal-authz") == ["bob"]
    assert ids(server, "users", "usrname=carol@corp-authz") == ["carol@corp"]
    assert ids(server, "users", "name=ali*") == ["alice"]
    assert ids(server, "users", "usrname=nobody@internal-authz") == []
    assert ids(server, "users", "vm.name=web1 and name!=bob") == ["alice", "carol@corp"]
    assert ids(server, "users", "vm.name=web2") == []
    assert len(ids(server, "users", "")) == 4
    assert ids(server, "users", "sortby name asc") == [], "the engine puts a condition behind every search"
    assert ids(server, "vms", "user.name=bob") == ["web1"]
    assert ids(server, "groups", "name=nothing") == []


def _grant(sdk: Connection, name: str) -> None:
    permissions = sdk.system_service().vms_service().vm_service("web1").permissions_service()
    permissions.add(types.Permission(role=types.Role(name="UserRole"), user=types.User(id=name)))


def test_a_role_goes_to_the_user_that_was_searched(server: Server, sdk: Connection, engine: Engine) -> None:
    for name in ("alice", "bob"):
        _grant(sdk, name)
    users = sdk.system_service().users_service().list(search="usrname=bob@internal-authz")
    permission = sdk.system_service().vms_service().vm_service("web2").permissions_service()
    permission.add(types.Permission(role=types.Role(name="UserVmManager"), user=types.User(id=users[0].id)))
    holders = {one.holder for one in engine.queries.permissions() if one.vm == "web2"}
    assert holders == {"bob"}


def test_any_search_of_vnic_profiles_finds_nothing(server: Server) -> None:
    assert len(request(f"{server.api_url}/vnicprofiles").xml) == 1
    assert ids(server, "vnicprofiles", "name=mgmt") == ids(server, "vnicprofiles", "") == []


def test_events(server: Server, sdk: Connection, engine: Engine) -> None:
    for number, severity in enumerate(("normal", "warning", "error", "alert")):
        sdk.system_service().events_service().add(
            types.Event(
                origin="test",
                custom_id=number,
                severity=types.LogSeverity(severity),
                description=f"number {number}",
                vm=types.Vm(id="web1") if number == 2 else None,
            )
        )
    engine.advance(1)
    sdk.system_service().vms_service().vm_service("spare").start()

    def numbers(search: str, **more: str) -> list[str | None]:
        found = ask(server, "events", search, **more).xml
        return [event.findtext("custom_id") for event in found if event.findtext("origin") == "test"]

    assert numbers("severity>normal") == ["3", "2", "1"]
    assert numbers("severity>=warning and severity!=alert") == ["2", "1"]
    assert numbers("vm.name=web1") == numbers("event_vm=web1") == ["2"]
    assert numbers("message=*3") == ["3"]
    assert numbers('event_vm!=""') == ["2"], "where there is no VM, the engine has an empty name"
    assert numbers("vm.id!=web1") == ["3", "1", "0"]
    assert numbers("vm.cluster=Default and origin=test") == ["2"]
    assert ids(server, "events", "host.name=alpha or host.name=beta") == ids(
        server, "events", "event_host=*a"
    )
    assert ids(server, "events", "event_host=*") != []
    everything = ids(server, "events", "")
    assert ids(server, "events", "time>yesterday") == ids(server, "events", "time=today") == everything
    assert ids(server, "events", "time>today") == everything, "today begins at midnight"
    assert ids(server, "events", 'time>"Jan 31, 2026" and time<3/2/26') == everything
    assert ids(server, "events", "time<today") == ids(server, "events", "time>2020-01-01") == []
    assert ids(server, "events", "time>Wednesday") == everything, "the clock shows a Sunday"
    assert ids(server, "events", "usrid=x") == [], "a field that cannot be compared"
    # `or` is found in `origin`, and `igin=test` is then free text.
    assert numbers("custom_event_id=2 origin=test") == ["2"]
    assert numbers("custom_event_id=2 and origin=test") == ["2"]
    assert ids(server, "events", "sortby time asc")[0] == "1"
