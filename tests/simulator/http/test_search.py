"""Searches find what they say, in the order they ask for; those that make no sense find nothing, with 200."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ovirtsdk4 import Connection

from ovirt_simulator.http.search.grammar import Both, Condition, Either, Search, SearchError, parse
from ovirt_simulator.http.search.select import Field, Searchable, select
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("name=web1", "web1"),
        ('name="web1"', "web1"),
        ("name=WEB1", "web1"),
        ("name=web*", "web1 web2 web3"),
        ("name=*1 and cluster=Default", "db1 web1"),
        ("id=db1", "db1"),
        ("id=WEB1 or id=db1 or id=nobody", "db1 web1"),
        ("id=db1 or id=web*", "db1 web1 web2 web3"),
        ("id=db1 or id!=web1 and name=web2", "db1 web2"),
        ('cluster="Second <&>"', "remote"),
        ("status=down", "idle spare"),
        ("status=Paused or status=NotResponding", "silent stuck"),
        ("status!=up and status!=down", "silent stuck"),
        ("on_host=beta", "db1 manual web2"),
        ("Hosts.name=beta and name!=db1", "manual web2"),
        ("on_host=alpha and (name=web1 or name=stuck)", "stuck web1"),
        ("name=web1 or name=web2 and on_host=alpha", "web1"),
        ("tag=blue", "web1"),
        ("memory>1024", "db1"),
        ("memory>=1024 and memory<8192 and name=web*", "web1 web2 web3"),
        ("name=web* sortby name desc", "web3 web2 web1"),
        ("name = web*  sortby name asc", "web1 web2 web3"),
        ("web", "web1 web2 web3"),
        ("name=nobody", ""),
    ],
)
def test_vms(sdk: Connection, search: str, found: str) -> None:
    assert [vm.id for vm in sdk.system_service().vms_service().list(search=search)] == found.split()


@pytest.mark.parametrize(
    "search",
    [
        "nmae=web1",
        "name=",
        "=web1",
        "name=web1 and",
        "status=nonsense",
        "memory=much",
        "name<web1",
        "(name=web1",
    ],
)
def test_what_makes_no_sense_finds_nothing(server: Server, search: str) -> None:
    reply = request(f"{server.api_url}/vms?search={quote(search)}")
    assert (reply.status, len(reply.xml)) == (200, 0)


def test_pages(sdk: Connection) -> None:
    vms = sdk.system_service().vms_service()
    everything = [vm.id for vm in vms.list()]
    pages = [[vm.id for vm in vms.list(search=f"page {page}", max=4)] for page in (1, 2, 3, 4)]
    assert [vm_id for page in pages for vm_id in page] == everything
    assert [len(page) for page in pages] == [4, 4, 3, 0]
    assert [vm.id for vm in vms.list(search="page 2")] == everything, "a page needs max"


def test_case(sdk: Connection) -> None:
    vms = sdk.system_service().vms_service()
    assert len(vms.list(search="name=WEB*")) == 3
    assert vms.list(search="name=WEB*", case_sensitive=True) == []


def test_hosts_and_clusters(sdk: Connection) -> None:
    system = sdk.system_service()
    hosts = system.hosts_service()
    assert [host.id for host in hosts.list(search="status=maintenance or cluster=Second*")] == [
        "far",
        "host3",
    ]
    assert [host.id for host in hosts.list(search="id=host2")] == ["host2"]
    assert [host.id for host in hosts.list(search="active_vms>3")] == ["host1"]
    clusters = system.clusters_service()
    assert [cluster.id for cluster in clusters.list(search='name="Default"')] == ["cluster1"]
    assert clusters.list(search="id=cluster1") == [], "the engine's search knows no id of clusters"


def test_precedence() -> None:
    a, b, c = (Condition("f", "=", value) for value in "abc")
    assert parse("f=a or f=b and f=c") == Search(where=Either(a, Both(b, c)))
    assert parse("(f=a or f=b) and f=c") == Search(where=Both(Either(a, b), c))
    assert parse("") == Search()
    assert parse('f="x and y" sortby f desc page 3') == Search(
        where=Condition("f", "=", "x and y"), sort="f", descending=True, page=3
    )


WORDS = st.text(alphabet="abAB*", min_size=1, max_size=4)


def matches(pattern: str, text: str) -> bool:
    """Say whether a text matches a pattern with `*`, by trying every split: slow and plainly right."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(matches(pattern[1:], text[skip:]) for skip in range(len(text) + 1))
    return text[:1].lower() == pattern[0].lower() and matches(pattern[1:], text[1:])


@given(
    st.lists(st.text(alphabet="abAB", max_size=4), max_size=6), WORDS, WORDS, st.sampled_from(["and", "or"])
)
def test_select_agrees_with_a_slow_judge(names: list[str], first: str, second: str, joined: str) -> None:
    searchable = Searchable({"name": Field(lambda name: name)}, "name")
    found = select(names, searchable, f"name={first} {joined} name!={second}")
    judge = all if joined == "and" else any
    expected = [name for name in names if judge((matches(first, name), not matches(second, name)))]
    assert found == sorted(expected)


@given(st.text(alphabet='ab=<>()"! andorsbypge12*', max_size=20))
def test_any_text_is_a_search_or_an_error(text: str) -> None:
    try:
        parse(text)
    except SearchError:
        return
