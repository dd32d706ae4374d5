"""`ha-check` about sets of hosts that mean something: named hosts, failure domains, and who does the work."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from tests.builders import Part, cluster, host, vm
from tests.placement.cli.state_asking import StateAsking

BLUE = cluster(name="blue", ha_reservation=True)
#: What is on one host goes to the other three, what is on a rack to the other rack: which has room for one.
RACKS = (
    BLUE,
    host("h1", name="north", tags=("rack-1", "old")),
    host("h2", name="south", tags=("rack-1",), free_mb=8192),
    host("h3", name="east", tags=("rack-2",), free_mb=4096),
    host("h4", name="west", tags=("rack-2",), free_mb=0),
    vm("v1", "h1", name="web", ha=True, needs_mb=4096),
    vm("v2", "h2", name="cache", ha=True, needs_mb=4096),
)
TAGS = '[ha]\ndomain_tags = ["rack-"]\n'
LISTED = """
[[ha.domains]]
name = "feed-a"
hosts = ["north", "h3"]
[[ha.domains]]
name = "feed-b"
hosts = ["south", "west"]
"""


class HaAsking:
    """Runs `ha-check`, on the racks unless it is asked about others."""

    def __init__(self, asking: StateAsking) -> None:
        self._asking = asking

    def configure(self, text: str) -> None:
        self._asking.configuration = text

    def text(self, status: int, arguments: str, *parts: Part) -> str:
        return self._asking.text(status, f"ha-check {arguments}", *(parts or RACKS))

    def data(self, status: int, arguments: str, *parts: Part) -> Any:
        return self._asking.data(status, f"ha-check {arguments}", *(parts or RACKS))


@pytest.fixture
def asking(asking: StateAsking) -> HaAsking:
    return HaAsking(asking)


@pytest.mark.parametrize("columns", [80, 50])
def test_what_stands_below_the_table_is_folded_to_the_terminal(
    asking: HaAsking, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for name, value in (("COLUMNS", str(columns)), ("TERM", "xterm"), ("NO_COLOR", "1"), ("PAGER", "")):
        monkeypatch.setenv(name, value)
    text = re.sub(r"\x1b\[\d*m", "", asking.text(1, "--hosts north,south"))
    below = text.partition("\n\n")[2].splitlines()
    assert below[0] == "If north and south failed:"
    assert max(map(len, below)) <= columns
    assert columns == 80 or any(line.startswith("    ") for line in below)
    # A command stands in a line of its own, to be copied.
    assert "  ovirt-placement what-if --down north,south" in below


def test_hosts_that_are_named_fail_together(asking: HaAsking) -> None:
    assert "unsafe" in asking.text(1, "--hosts north,south")
    (found,) = asking.data(1, "--hosts north,h2")["clusters"]
    assert [loss["hosts"] for loss in found["losses"]] == [["h1", "h2"]]
    assert (found["failures"], found["units"]) == (1, [{"hosts": ["h1", "h2"], "domain": None}])
    assert asking.data(0, "--failures 1")["clusters"][0]["safe"] is True


def test_survival_of_named_hosts_comes_with_homes_in_an_order(asking: HaAsking) -> None:
    (found,) = asking.data(0, "--hosts north,west")["clusters"]
    assert found["survivals"] == [
        {"hosts": ["h1", "h4"], "domains": [], "homes": [{"vm": "v1", "host": "h2"}]}
    ]


def test_hosts_that_are_named_need_no_reservation_and_are_of_their_cluster(asking: HaAsking) -> None:
    parts = (cluster("c1"), cluster("c2"), host("h1", cluster="c1"), host("h2", cluster="c2"))
    assert [one["cluster"] for one in asking.data(0, "--hosts h2", *parts)["clusters"]] == ["c2"]
    assert "nothing was checked" in asking.text(2, "", *parts)


def test_domains_by_tag_fail_whole(asking: HaAsking) -> None:
    asking.configure(TAGS)
    (found,) = asking.data(1, "--domains")["clusters"]
    assert [unit["domain"] for unit in found["units"]] == ["rack-1", "rack-2"]
    assert [(loss["domains"], loss["hosts"]) for loss in found["losses"]] == [(["rack-1"], ["h1", "h2"])]
    assert [one["domains"] for one in found["survivals"]] == [["rack-2"]]
    assert "domain rack-1" in asking.text(1, "--domains")
    assert asking.data(0, "--domain rack-2")["clusters"][0]["safe"] is True
    assert "Each highly available VM restarts if any one of them fails." in asking.text(0, "--domain rack-2")
    assert "Each highly available VM restarts" not in asking.text(1, "--domains")
    assert asking.data(1, "--domain rack-1")["clusters"][0]["safe"] is False


def test_domains_by_list_and_several_at_once(asking: HaAsking) -> None:
    asking.configure(LISTED)
    assert asking.data(0, "--domains")["clusters"][0]["safe"] is True
    assert "Failure domains of cluster blue: feed-a (north, east); feed-b (south, west)" in asking.text(
        0, "--domains"
    )
    (found,) = asking.data(1, "--domain feed-a --domain feed-b --failures 2")["clusters"]
    assert [loss["domains"] for loss in found["losses"]] == [["feed-a", "feed-b"]]


@pytest.mark.parametrize(
    ("configuration", "arguments", "reported"),
    [
        (TAGS, "--domain rack-9", 'no failure domain "rack-9"; did you mean "rack-'),
        ("", "--domains", "no failure domains: set domains or domain_tags under [ha]"),
        (TAGS.replace("rack", "row"), "--domains", 'no host is known to have a tag that begins with "row-"'),
        (LISTED.replace("west", "wset"), "--domains", '[ha] domain "feed-b": no host "wset"'),
        (
            TAGS + LISTED.replace("feed-a", "rack-1"),
            "--domains",
            '"rack-1" is the name of two failure domains',
        ),
        ("", "--hosts nroth", 'no host "nroth"; did you mean "north"'),
        ("", "--hosts north --failures 2", "it takes no --failures"),
        pytest.param(
            "",
            "--scheduler tcp://127.0.0.1:1",
            "no Dask scheduler at tcp://127.0.0.1:1",
            marks=pytest.mark.system,
        ),
    ],
)
def test_what_is_not_known_is_said(
    asking: HaAsking, configuration: str, arguments: str, reported: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ovirt_placement.answers.ha.workers._CONNECT_SECONDS", 0.2)
    asking.configure(configuration)
    assert reported in asking.text(2, arguments)


def test_where_the_steps_end_it_says_what_is_proven_and_what_is_tightest(asking: HaAsking) -> None:
    hosts = [host(f"h{number}", name=f"node{number}", free_mb=5000) for number in range(6)]
    vms = [vm(f"v{number}", f"h{number}", ha=True, needs_mb=4096) for number in range(6)]
    text = asking.text(1, "--failures 3 --steps 14", BLUE, *hosts, *vms)
    reported = [" ".join(line.split()) for line in text.splitlines()]
    pairs = "6 sets of 2 hosts are not judged 9 sets of hosts are proven to be survived"
    assert f"blue 3 unknown unknown {pairs}" in reported
    assert any("among the tightest: room for 0 more VMs of 4096 MiB at most" in line for line in reported)
    (found,) = asking.data(1, "--failures 3 --steps 14", BLUE, *hosts, *vms)["clusters"]
    assert found["safe"] is None
    assert [size["size"] for size in found["sizes"]] == [1, 2, 3]
    assert len(found["tightest"][0]["hosts"]) == 3


def test_more_failures_than_there_are_hosts_are_a_mistake(asking: HaAsking) -> None:
    assert "--failures 99: cluster blue has 4 hosts that are up" in asking.text(2, "--failures 99")
    asking.text(1, "--failures 4")
