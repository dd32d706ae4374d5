"""`ha-check` about sets of hosts that mean something, who does the work, and the order of restarts."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.rules.elements.assignment import BudgetSpentError
from ovirt_placement.rules.failover.check import Starts
from ovirt_placement.rules.failover.outcomes import Outcome
from tests.builders import Part, cluster, host, rule, snapshot, vm
from tests.paths import CHECKOUT
from tests.placement.cli.live_engine import Starting, StateAsking

# -- `ha-check` about sets of hosts that mean something: named hosts, failure domains, and who does the work.
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
RESTS = host("h5", status="maintenance")
TAGS = '[ha]\ndomain_tags = ["rack-"]\n'
LISTED = """
[[ha.domains]]
name = "feed-a"
hosts = ["north", "h3"]
[[ha.domains]]
name = "feed-b"
hosts = ["south", "west"]
"""


class Ask:
    """Runs `ha-check`, on the racks unless it is asked about others."""

    def __init__(self, asking: StateAsking) -> None:
        self.asking = asking

    def text(self, status: int, arguments: str, *parts: Part) -> str:
        return self.asking.text(status, f"ha-check {arguments}", *(parts or RACKS))

    def data(self, status: int, arguments: str, *parts: Part) -> Any:
        """What is said of each cluster."""
        return self.asking.data(status, f"ha-check {arguments}", *(parts or RACKS))["clusters"]


@pytest.fixture
def ha(asking: StateAsking) -> Ask:
    return Ask(asking)


@pytest.mark.parametrize("columns", [80, 50])
def test_what_stands_below_the_table_is_folded_to_the_terminal(
    ha: Ask, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for name, value in (("COLUMNS", str(columns)), ("TERM", "xterm"), ("NO_COLOR", "1"), ("PAGER", "")):
        monkeypatch.setenv(name, value)
    text = re.sub(r"\x1b\[\d*m", "", ha.text(1, "--hosts north,south"))
    below = text.partition("\n\n")[2].splitlines()
    assert below[0] == "If north and south failed:"
    assert max(map(len, below)) <= columns
    assert columns == 80 or any(line.startswith("    ") for line in below)
    # A command stands in a line of its own, to be copied.
    assert "  ovirt-placement what-if --down north,south" in below


def test_hosts_that_are_named_fail_together(ha: Ask) -> None:
    (found,) = ha.data(1, "--hosts north,h2")
    assert [loss["hosts"] for loss in found["losses"]] == [["h1", "h2"]]
    assert (found["failures"], found["units"]) == (1, [{"hosts": ["h1", "h2"], "domain": None}])
    assert ha.data(0, "--failures 1")[0]["safe"] is True
    (found,) = ha.data(0, "--hosts north,west")
    homes = [{"vm": "v1", "host": "h2"}]
    assert found["survivals"] == [{"hosts": ["h1", "h4"], "domains": [], "homes": homes}]
    # They need no reservation, and are of their cluster.
    parts = (cluster("c1"), cluster("c2"), host("h1", cluster="c1"), host("h2", cluster="c2"))
    assert [one["cluster"] for one in ha.data(0, "--hosts h2", *parts)] == ["c2"]
    assert "nothing was checked" in ha.text(2, "", *parts)


def test_domains_by_tag_or_by_list_fail_whole(ha: Ask) -> None:
    ha.asking.configuration = TAGS
    (found,) = ha.data(1, "--domains")
    assert [unit["domain"] for unit in found["units"]] == ["rack-1", "rack-2"]
    assert [(loss["domains"], loss["hosts"]) for loss in found["losses"]] == [(["rack-1"], ["h1", "h2"])]
    assert [one["domains"] for one in found["survivals"]] == [["rack-2"]]
    assert "domain rack-1" in ha.text(1, "--domains")
    restarts = "Each highly available VM restarts if any one of them fails."
    for lost, domain in ((True, "rack-1"), (False, "rack-2")):
        assert (restarts in ha.text(int(lost), f"--domain {domain}")) is not lost
    ha.asking.configuration = LISTED
    listed = "Failure domains of cluster blue: feed-a (north, east); feed-b (south, west)"
    assert listed in ha.text(0, "--domains")
    (found,) = ha.data(1, "--domain feed-a --domain feed-b --failures 2")
    assert [loss["domains"] for loss in found["losses"]] == [["feed-a", "feed-b"]]


@pytest.mark.parametrize(
    ("failures", "arguments", "restored"),
    [
        (1, "--hosts north,south", False),
        (1, "--failures 2", False),
        (2, "--failures 2", True),
        (2, "", True),
        (1, "--domains", True),
    ],
)
def test_the_enforcer_is_named_where_it_restores_what_was_asked_about(
    ha: Ask, failures: int, arguments: str, restored: bool
) -> None:
    """As many hosts as the cluster reserves for, and each failure domain."""
    ha.asking.configuration = TAGS
    parts = (cluster(name="blue", ha_reservation=True, ha_failures=failures), *RACKS[1:])
    assert ("ovirt-enforcer plan" in ha.text(1, arguments, *parts)) is restored


UNKNOWN = [
    (TAGS, "--domain rack-9", 'no failure domain "rack-9"; did you mean "rack-'),
    ("", "--domains", "no failure domains: set domains or domain_tags under [ha]"),
    (TAGS.replace("rack", "row"), "--domains", 'no host is known to have a tag that begins with "row-"'),
    (LISTED.replace("west", "wset"), "--domains", '[ha] domain "feed-b": no host "wset"'),
    (
        f"{TAGS}{LISTED}".replace("feed-a", "rack-1"),
        "--domains",
        '"rack-1" is the name of two failure domains',
    ),
    ("", "--hosts nroth", 'no host "nroth"; did you mean "north"'),
    ("", "--hosts north --failures 2", "it takes no --failures"),
    ("", "--failures 5", "--failures 5: cluster blue has 4 hosts that are up"),
]
SILENT = ("", "--scheduler tcp://127.0.0.1:1", "no Dask scheduler at tcp://127.0.0.1:1")


@pytest.mark.parametrize(
    ("configuration", "arguments", "said"), [*UNKNOWN, pytest.param(*SILENT, marks=pytest.mark.system)]
)
def test_what_is_not_known_is_said(
    ha: Ask, configuration: str, arguments: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ovirt_placement.answers.status.ha_check._CONNECT_SECONDS", 0.2)
    ha.asking.configuration = configuration
    assert said in ha.text(2, arguments, *RACKS, RESTS)


def test_where_the_steps_end_it_says_what_is_proven_and_what_is_tightest(ha: Ask) -> None:
    hosts = [host(f"h{number}", name=f"node{number}", free_mb=5000) for number in range(6)]
    vms = [vm(f"v{number}", f"h{number}", ha=True, needs_mb=4096) for number in range(6)]
    text = ha.text(1, "--failures 3 --steps 14", BLUE, *hosts, *vms)
    assert "6 sets of 2 hosts are not judged" in text
    assert "among the tightest: room for 0 more VMs of 4096 MiB at most" in text


def test_hosts_that_are_named_and_too_hard_to_judge_are_one_set(
    ha: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    ha.text(1, "--failures 4")  # as many as are up

    def judge(*_: object) -> Outcome:
        raise BudgetSpentError

    monkeypatch.setattr(Starts, "judge", judge)
    assert "1 set is not judged" in ha.text(1, "--hosts north,south")


# -- The order of restarts as an administrator sees it: `ha-check`, `why`, `what-if --down` and `rules`.
WEB: dict[str, Any] = {"ha": True, "ha_priority": 100, "migratable": False, "pinned_hosts": ("n1", "n2")}
DB: dict[str, Any] = {**WEB, "ha_priority": 1, "pinned_hosts": ("n1", "n3")}
HOSTS = (
    host("n1", name="node1"),
    host("n2", name="node2", tags=("rack-1",)),
    host("n3", name="node3", tags=("rack-2",)),
)
SPREAD = rule("racks", "spread", "web1 web2 db1", domain_tags=("rack-",), max_skew=1)
#: After the failure of node1 a database server must start between two web servers, and has a lower priority.
UNEVEN = (BLUE, *HOSTS, SPREAD, vm("web1", "n1", **WEB), vm("web2", "n1", **WEB), vm("db1", "n1", **DB))
#: The same with one priority and a rule, by which the first of all is the database server.
RULED = (
    *(BLUE, *HOSTS, SPREAD, rule("web-after-db", "restart_after", "web1 web2", other_vms="db1")),
    *(vm(name, "n1", **{**WEB, "ha_priority": 1}) for name in ("web1", "web2")),
    vm("db1", "n1", **DB),
)


def test_what_the_order_makes_impossible_is_named_with_the_order_that_would_do(asking: StateAsking) -> None:
    text = asking.text(1, "ha-check", *UNEVEN)
    shown = text[text.index("If node1 failed") : text.index("Each start")]
    assert shown in (CHECKOUT / "docs" / "ha.md").read_text()
    (found,) = asking.data(1, "ha-check", *UNEVEN)["clusters"]
    (loss,) = found["losses"]
    assert (loss["hosts"], loss["unplaced"]) == (["n1"], ["web2"])
    assert loss["in_another_order"][1] == {"vm": "db1", "host": "n3"}
    order = [(one["priority"], one["vms"]) for one in found["restart_order"]]
    assert order == [(100, ["web1", "web2"]), (1, ["db1"])]


def test_starts_stand_in_the_order_that_rules_ask_for(asking: StateAsking) -> None:
    (found,) = asking.data(0, "ha-check", *RULED)["clusters"]
    (survival,) = (one for one in found["survivals"] if one["hosts"] == ["n1"])
    assert [home["vm"] for home in survival["homes"]] == ["db1", "web1", "web2"]
    waiting = [(one["rule"]["name"], one["vms"]) for one in found["not_waiting"]]
    assert waiting == [("web-after-db", ["web1", "web2"])]
    late = "placement rule web-after-db: the engine goes by priorities alone, and may restart too early"
    assert f"{late}: web1, web2\n" in asking.text(0, "ha-check", *RULED)
    alike = tuple(part for part in RULED if part.name != "web-after-db")
    assert asking.data(0, "ha-check", *alike)["clusters"][0]["not_waiting"] == []


def test_who_goes_in_a_circle_does_not_wait_for_one_another(asking: StateAsking) -> None:
    circle = (
        *(BLUE, *HOSTS, rule("a", "restart_after", "web1 web2", other_vms="db1")),
        rule("b", "restart_after", "db1", other_vms="web1"),
        *(vm(name, "n1", ha=True) for name in ("web1", "web2", "db1")),
    )
    (found,) = asking.data(0, "ha-check", *circle)["clusters"]
    assert [(one["rule"]["name"], one["vms"]) for one in found["not_waiting"]] == [("a", ["web2"])]
    shown = asking.data(0, "rules show", *circle)["rules"]
    assert [one["record"]["satisfied"] for one in shown] == [False, True]


def test_why_shows_priority_place_and_what_is_waited_for(asking: StateAsking) -> None:
    lines = asking.text(0, "why web1", *RULED).splitlines()
    after = "web1 is to restart after db1 (placement rule web-after-db)"
    place = "restarts as number 2 of 3 at the earliest, and 3 at the latest"
    assert lines[-2:] == [
        f"restart priority 1; if node1 fails, web1 {place}",
        f"{after}: the engine does not wait: its priority is not higher",
    ]
    lines = asking.text(0, "why db1", *RULED).splitlines()
    assert lines[-1] == "restart priority 1; if node1 fails, db1 is number 1 of 3 to restart"
    assert asking.data(0, "why web1", *UNEVEN)["restart"] == {
        "priority": 100, "after": [], "host": "n1", "earliest": 1, "latest": 2, "of": 3,
    }  # fmt: skip
    down = asking.data(0, "why spare", *UNEVEN, vm("spare", ha=True, ha_priority=50))["restart"]
    assert (down["priority"], down["host"], down["earliest"], down["of"]) == (50, None, None, None)
    assert asking.data(0, "why plain", *UNEVEN, vm("plain", "n1"))["restart"] is None


def test_what_if_lists_the_starts_in_their_order(asking: StateAsking) -> None:
    vms = (
        vm("low", "n1", ha=True, needs_mb=2048),
        vm("high", "n1", ha=True, needs_mb=2048, ha_priority=100),
        vm("middle", "n1", ha=True, needs_mb=4096, ha_priority=50),
    )
    for parts, expected in (
        ((BLUE, *HOSTS, *vms), ["high (priority 100)", "middle (priority 50)", "low (priority 1)"]),
        (RULED, ["db1", "web1", "web2"]),
    ):
        lines = asking.lines(0, "what-if --down node1", *parts)
        assert [line.split(" starts on ")[0] for line in lines if " starts on " in line] == expected


@pytest.mark.system
def test_a_rule_is_written_shown_and_refused_in_a_circle(starting: Starting, tmp_path: Path) -> None:
    parts = [vm("web1", "n1", ha=True, tags=("web",)), vm("db1", "n2", ha=True), vm("batch", "n2")]
    with starting(snapshot(BLUE, *HOSTS, *parts)) as live:
        configuration = live.config.read_text().replace("[store]", "max_age_seconds = 0.000001\n[store]")
        live.config.write_text(configuration)
        kind = ("--kind", "restart_after", "--cluster", "blue", "--vms")
        out, _ = live.run(0, "rules", "add", "a", *kind, "tag:web", "--other-vms", "db1")
        assert out == "added a: restart_after, hard\n"
        out, _ = live.run(0, "rules show a")
        assert "  other VMs (db1): db1\n  violated\n  may restart too early: web1\n" in out
        circle = "the restart order goes in a circle: db1 after web1 (b), web1 after db1 (a)"
        for words, complaint in (
            ("b db1 --other-vms tag:web", circle),
            ("c db1 --other-vms db1", "the restart order goes in a circle: db1 after db1 (c)"),
            ("c batch --other-vms db1", "the engine restarts nothing that batch names: it is not highly"),
            ("c web1 --other-vms db1 --soft", "restart_after is neither soft nor satisfied in the end only"),
            ("c web1", "a rule of the kind restart_after needs other_vms"),
        ):
            name, *members = words.split()
            assert complaint in live.run(2, "rules", "add", name, *kind, *members)[1]
        live.engine.vms.edit("db1", ha_priority=50)
        (one,) = live.data(0, "rules list")["rules"]
        assert (one["record"]["satisfied"], one["record"]["offenders"]) == (True, [])
        live.run(0, "rules", "add", "b", *kind, "db1", "--other-vms", "tag:web", "--force")
        assert f"b: {circle}\n" in live.run(1, "rules check")[0]
        exported = tmp_path / "rules.yaml"
        exported.write_text(live.run(0, "rules export")[0])
        live.run(0, "rules remove a b")
        assert "goes in a circle" in live.run(2, "rules", "apply", str(exported))[1]


# -- What is printed to be typed can be typed, and leads somewhere.
SHARED = (
    cluster("c1", name="blue", ha_reservation=True),
    cluster("c2", name="red"),
    host("h1", cluster="c1", name="north"),
    host("h2", cluster="c2", name="north"),
    vm("v1", "h1", cluster="c1", name="web", ha=True),
    vm("v2", "h2", cluster="c2", name="web", ha=True),
    vm("v3", cluster="c1", name="two words", ha=True, crashed=True, needs_mb=99000),
)  # fmt: skip


def test_names_that_others_have_or_a_shell_splits_are_printed_as_ids(ha: Ask) -> None:
    text = ha.text(1, "--cluster blue", *SHARED)
    assert "(ovirt-placement why v3)" in text
    assert "  ovirt-placement what-if --down h1\n" in text
    assert "(ovirt-placement why v3)" in ha.asking.text(1, "status", *SHARED)
    crashed: dict[str, Any] = {"ha": True, "crashed": True, "needs_mb": 99000}
    named_as_another = vm("v4", cluster="c1", name="v3", **crashed)
    assert "(ovirt-placement why v4)" in ha.text(1, "--cluster blue", *SHARED, named_as_another)
    known = ha.asking.text(1, "status", BLUE, host("h1"), vm("v1", name="web", **crashed))
    assert "(ovirt-placement why web)" in known
    # No plan restores what is not reserved.
    assert "  ovirt-enforcer plan\n" in text
    assert "ovirt-enforcer plan" not in ha.text(1, "--cluster red", *SHARED)
