"""Searches find what they say, in the order they ask for; those that make no sense find nothing, with 200.

What is expected here was read in the engine's `searchbackend`, oddities included.
"""

from __future__ import annotations

import pytest

from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request
from tests.simulator.http.searching import ask, ids

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
        # The engine holds nothing for a VM that has no next run, so it is not false either.
        ("next_run_config_exists=true", ""),
        ("next_run_config_exists=false", ""),
        ("next_run_config_exists!=false and name=web1", "web1"),
        ("has_illegal_images=false", "db1"),
        # Only a guest agent would report addresses.
        ("ip=10.*", ""),
        ("ip!=10.* and fqdn!=web* and name=web*", "web1 web2 web3"),
        ("quota=quota1", "db1"),
        ("quota!=null", "db1"),
        ("name=web* sortby name desc", "web3 web2 web1"),
        ("name = web*  sortby name asc", "web1 web2 web3"),
        ("name=web* sortby on_host", "web1 web3 web2"),
        ("sortby status desc", "silent stuck Engine db1 manual remote web1 web2 web3 idle spare"),
        ("creationdate>1/31/26 and creationdate<3/2/2026 and name=web1", "web1"),
        # Of these the engine reads a time as well; the clock showed noon when all were created.
        ('creationdate>"3/1/26 11:59 AM" and name=web1', "web1"),
        ('creationdate>"3/1/26 12:01 PM"', ""),
        ('creationdate<"Mar 2, 26" and name=web1', "web1"),
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
        "uptime>99999999999",
        "uptime>1 12:00:00",
        "name=web1\u00a0",
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
        ("hosts", "template.name=tpl1", 400, 'ERROR: missing FROM-clause entry for table "vms"'),
        ("templates", "event.severity=error", 400, 'ERROR: missing FROM-clause entry for table "vms"'),
        ("vms", "TAG=red", 400, 'ERROR: missing FROM-clause entry for table "vms_with_tags"'),
        ("users", "VM.name=web1", 400, "ERROR: column vdc_users.vm_guid does not exist"),
        ("users", "host.name=alpha", 400, "ERROR: column vdc_users.vm_guid does not exist"),
        ("users", "pool=x", 400, "ERROR: column vdc_users.vm_pool_name does not exist"),
        ("events", "hosts.name=alpha", 400, 'ERROR: missing FROM-clause entry for table "vds_with_tags"'),
        ("events", "time>1/1/99999", 400, 'ERROR: date/time field value out of range: "1/1/99999"'),
        (
            "templates",
            "vms.name=db1 sortby name",
            400,
            "ERROR: for SELECT DISTINCT, ORDER BY expressions must appear in select list",
        ),
        (
            "vms",
            "migration_progress_percent>0",
            400,
            "ERROR: column vms.migration_progress_percent does not exist",
        ),
        (
            "clusters",
            "storage.status=active",
            400,
            "ERROR: column storage_domains_with_hosts_view.status does not exist",
        ),
        (
            "instancetypes",
            "small",
            400,
            "ERROR: column instance_types_storage_domain.tag_name does not exist",
        ),
        ("jobs", "upgrade", 400, 'ERROR: syntax error at or near ")"'),
        ("vms", "memory=\u0663", 400, 'ERROR: invalid input syntax for type integer: "\u0663"'),
        ("vms", "vnics=x", 500, ""),
        ("instancetypes", "vm.name=db1", 500, ""),
        ("vms", "id=web*", 400, 'ERROR: invalid input syntax for type uuid: "web*"'),
        ("disks", "size>big", 400, 'ERROR: invalid input syntax for type bigint: "big"'),
        ("templates", "sealed=perhaps", 400, 'ERROR: invalid input syntax for type boolean: "perhaps"'),
        ("templates", "sortby tag", 400, 'ERROR: column "tag_name" does not exist'),
        ("events", "host.status=up", 400, "ERROR: column vds_with_tags_temp.status does not exist"),
        ("vms", "creationdate>today", 500, ""),
        ("vms", "page 0", 400, "ERROR: OFFSET must not be negative"),
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
    assert ids(server, "disks", "page 1", max="1") == ["disk1"]
    assert ids(server, "disks", "page 2", max="1") == [], "the engine takes `max` of all disks that it finds"
    assert ids(server, "vms", "page 2 ", max="4") == VMS.split()[:4], "a blank behind it makes it the first"


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


def test_a_list_that_is_followed_is_not_searched(server: Server) -> None:
    reply = ask(server, "clusters", "name=Default", follow="networks")
    assert [len(networks) for networks in reply.xml.iter("networks")] == [2]
    assert len(ask(server, "clusters/cluster1/networks", "name=nothing").xml) == 2
