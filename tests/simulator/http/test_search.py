"""Searches find what they say, in the order they ask for; those that make no sense find nothing, with 200.

What is expected here was read in the engine's `searchbackend`, oddities included.
"""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ovirtsdk4 import Connection, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.search.errors import SearchError
from ovirt_simulator.http.search.expression import Both, Condition, Either, Search
from ovirt_simulator.http.search.objects import OBJECTS
from ovirt_simulator.http.search.parse import parse
from ovirt_simulator.http.search.values import free_text
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import Reply, request


def ask(server: Server, collection: str, search: str, **more: str) -> Reply:
    parameters = "".join(f"&{name}={value}" for name, value in more.items())
    return request(f"{server.api_url}/{collection}?search={quote(search)}{parameters}")


def ids(server: Server, collection: str, search: str, **more: str) -> list[str]:
    reply = ask(server, collection, search, **more)
    assert reply.status == 200
    return [item.get("id", "") for item in reply.xml]


VMS = "Engine db1 idle manual remote silent spare stuck web1 web2 web3"


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("", VMS),
        ("name=web1", "web1"),
        ('name="web1"', "web1"),
        ('name = "web1"', "web1"),
        ("name=WEB1", "web1"),
        ("NAME=web*", "web1 web2 web3"),
        ("name=*1 and cluster=Default", "db1 web1"),
        ("id=db1", "db1"),
        ("id=WEB1 or id=db1 or id=nobody", "db1 web1"),
        ("id=db1 or id!=web1 and name=web2", "db1 web2"),
        ('cluster="Second <&>"', "remote"),
        ("status=down", "idle spare"),
        ("status=Paused or status=NotResponding", "silent stuck"),
        ("status!=up and status!=down", "silent stuck"),
        ("on_host=beta", "db1 manual web2"),
        ("name=web1 or name=web2 and on_host=alpha", "web1"),
        ("memory>1024", "db1"),
        ("memory>=1024 and memory<8192 and name=web*", "web1 web2 web3"),
        ("guaranteed_memory=4096", "db1"),
        ("vcpus=4", "db1"),
        ("type=server and architecture=x86_64 and os=other and vcpus!=1", "db1"),
        ("next_run_config_exists=true", ""),
        ("quota=quota1", "db1"),
        ("quota!=null", "db1"),
        ("name=web* sortby name desc", "web3 web2 web1"),
        ("name = web*  sortby name asc", "web1 web2 web3"),
        ("name=web* sortby on_host", "web1 web3 web2"),
        ("sortby status desc", "silent stuck Engine db1 manual remote web1 web2 web3 idle spare"),
        ("creationdate>1/31/26 and creationdate<3/2/2026 and name=web1", "web1"),
        ("uptime<00:01:00 and on_host=beta", "db1 manual web2"),
        ("uptime<1 and status=down", "idle spare"),
        ("uptime>1", ""),
        ("name=nobody", ""),
        # Words without a field are free text; it may stand before conditions, and is joined by `and`.
        ("web", "web1 web2 web3"),
        ("beta", "db1 manual web2"),
        ("idle", "idle"),
        ("web on_host=alpha", "web1 web3"),
        # What stands in a row is joined by an `and` that binds less than `or`.
        ("name=web* on_host=alpha", "web1 web3"),
        ("name=web1 or name=web2 on_host=alpha", "web1"),
        # Words end where they can: this has an `and` in it, as far as the engine is concerned.
        ("name=web* andon_host=beta", "web2"),
        # What is unlike something may be nothing at all.
        ("on_host!=alpha and cluster=Default", "db1 idle manual spare web2"),
        # In an `!=` an underscore is any letter.
        ("name!=web_", "Engine db1 idle manual remote silent spare stuck"),
    ],
)
def test_vms(server: Server, search: str, found: str) -> None:
    assert ids(server, "vms", search) == found.split()


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
        ("hosts", "template.name=tpl1", "host2"),
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
        ("instancetypes", "name=small", "small"),
        ("disks", "name=disk1", "disk1"),
        ("disks", "vm_names=db1 and number_of_vms=1", "disk1 disk2"),
        ("disks", "id=disk2", "disk2"),
        ("disks", "alias=nothing", ""),
    ],
)
def test_other_collections(server: Server, collection: str, search: str, found: str) -> None:
    assert sorted(ids(server, collection, search)) == sorted(found.split())


@pytest.mark.parametrize(
    "search",
    [
        "name",
        "name=",
        "=",
        "nmae=web1",
        "name=web1 and",
        "name=web1 or",
        "status=nonsense",
        "memory=much",
        "memory=1.5",
        "name<web1",
        "name='web1'",
        "name=web1;",
        'name="web1',
        "uptime=1",
        "os=Other",
        # Brackets mean nothing, and are part of words.
        "(name=web1",
        "name=web1 and (name=web1 or name=web1)",
        # VMs have a field of that name, not the object.
        "cluster.name=Default",
        "name=web1 and cluster.name=Default",
        "host.id=host1",
        "hostname=alpha",
        # Free text is taken once for each object.
        "web web",
        "host=beta and host=alpha",
        "sortby nothing",
        "sortby name page 1",
        "sortby name up",
        "page one",
        "name=web1\\",
        "creationdate=1/1/26",
    ],
)
def test_what_makes_no_sense_finds_nothing(server: Server, search: str) -> None:
    assert ids(server, "vms", search) == []


@pytest.mark.parametrize(
    ("collection", "search", "status", "detail"),
    [
        ("vms", "id=web*", 400, 'ERROR: invalid input syntax for type uuid: "web*"'),
        ("disks", "size>big", 400, 'ERROR: invalid input syntax for type bigint: "big"'),
        ("templates", "sealed=perhaps", 400, 'ERROR: invalid input syntax for type boolean: "perhaps"'),
        ("templates", "sortby tag", 400, 'ERROR: column "tag_name" does not exist'),
        ("events", "host.status=up", 400, "ERROR: column vds_with_tags_temp.status does not exist"),
        ("vms", "creationdate>today", 500, ""),
    ],
)
def test_what_the_database_fails_on_is_a_fault(
    server: Server, collection: str, search: str, status: int, detail: str
) -> None:
    reply = ask(server, collection, search)
    assert (reply.status, reply.xml.tag, reply.xml.findtext("detail")) == (status, "fault", detail)


def test_a_search_that_ends_within_quotes_or_before_it_begins_finds_all(server: Server) -> None:
    assert ids(server, "vms", '"web') == ids(server, "vms", "  ") == VMS.split()


def test_pages(server: Server) -> None:
    pages = [ids(server, "vms", f"page {page}", max="4") for page in (1, 2, 3, 4)]
    assert pages == [VMS.split()[:4], VMS.split()[4:8], VMS.split()[8:], []]
    assert ids(server, "vms", "sortby name desc page 2", max="2") == ["web1", "stuck"]
    assert ids(server, "vms", "page 1") == VMS.split()
    assert ids(server, "vms", "page 2") == [], "without max the first page holds all that there can be"
    assert ids(server, "vms", "page 2 ", max="4") == VMS.split()[:4], "a blank behind it makes it the first"
    assert ids(server, "vms", "page 0", max="4") == []


@pytest.mark.parametrize("collection", ["vms", "hosts", "events", "users"])
def test_a_limit_below_nothing_is_refused(server: Server, collection: str) -> None:
    reply = request(f"{server.api_url}/{collection}?max=-2")
    assert (reply.status, reply.xml.findtext("detail")) == (
        400,
        "Illegal max count value for query : -2",
    )


def test_case_counts_for_texts_only(server: Server) -> None:
    assert ids(server, "vms", "name=WEB*") == ["web1", "web2", "web3"]
    assert ids(server, "vms", "name=WEB*", case_sensitive="true") == []
    assert ids(server, "vms", "status=UP and name=web*", case_sensitive="true") == ["web1", "web2", "web3"]
    assert ids(server, "vms", "WEB", case_sensitive="") == []


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


def test_a_list_that_is_followed_is_not_searched(server: Server) -> None:
    reply = ask(server, "clusters", "name=Default", follow="networks")
    assert [len(networks) for networks in reply.xml.iter("networks")] == [2]
    assert len(ask(server, "clusters/cluster1/networks", "name=nothing").xml) == 2


def test_precedence() -> None:
    a, b, c = (Condition("VM", OBJECTS["VM"].fields["NAME"], "=", value) for value in "abc")
    assert parse("name=a or name=b and name=c", "VM").where == Either(a, Both(b, c))
    assert parse("name=a and name=b or name=c", "VM").where == Either(Both(a, b), c)
    assert parse("name=a name=b or name=c", "VM").where == Both(a, Either(b, c))
    assert parse("", "VM") == Search()
    fields = OBJECTS["VM"].fields
    assert parse('name="x and y" sortby memory desc page 31', "VM") == Search(
        where=Condition("VM", fields["NAME"], "=", "x and y"),
        sort=fields["MEMORY"],
        descending=True,
        page=31,
    )


WORDS = st.text(alphabet="abAB*", min_size=1, max_size=4)


def matches(pattern: str, text: str) -> bool:
    """Say whether a text matches a pattern with `*`, by trying every split: slow and plainly right."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(matches(pattern[1:], text[skip:]) for skip in range(len(text) + 1))
    return text[:1].lower() == pattern[0].lower() and matches(pattern[1:], text[1:])


@given(st.text(alphabet="abAB", max_size=5), WORDS, st.sampled_from(["=", "!="]))
def test_free_text_agrees_with_a_slow_judge(text: str, word: str, relation: str) -> None:
    assert free_text(relation, word, False)(text) == (matches(f"*{word}*", text) == (relation == "="))


PIECES = [
    "name",
    "host",
    "hosts",
    ".",
    "=",
    "!=",
    ">",
    " ",
    '"',
    "and",
    "or",
    "web",
    "(",
    "page",
    "1",
    "sortby",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from(sorted(OBJECTS)))
def test_any_text_is_a_search_or_an_error(pieces: list[str], searched: str) -> None:
    try:
        parse("".join(pieces), searched)
    except SearchError:
        return
