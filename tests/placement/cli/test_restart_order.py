"""The order of restarts as an administrator sees it: `ha-check`, `why`, `what-if --down` and `rules`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import cluster, host, rule, snapshot, vm
from tests.paths import CHECKOUT
from tests.placement.cli.live_engine import Starting
from tests.placement.cli.state_asking import StateAsking

BLUE = cluster(name="blue", ha_reservation=True)
WEB: dict[str, Any] = {"ha": True, "ha_priority": 100, "migratable": False, "pinned_hosts": ("n1", "n2")}
DB: dict[str, Any] = {**WEB, "ha_priority": 1, "pinned_hosts": ("n1", "n3")}
HOSTS = (
    host("n1", name="node1"),
    host("n2", name="node2", tags=("rack-1",)),
    host("n3", name="node3", tags=("rack-2",)),
)
RACKS = rule("racks", "spread", "web1 web2 db1", domain_tags=("rack-",), max_skew=1)
#: After the failure of node1 a database server must start between two web servers, and has a lower priority.
UNEVEN = (BLUE, *HOSTS, RACKS, vm("web1", "n1", **WEB), vm("web2", "n1", **WEB), vm("db1", "n1", **DB))
#: The same with one priority and a rule, by which the first of all is the database server.
RULED = (
    *(BLUE, *HOSTS, RACKS, rule("web-after-db", "restart_after", "web1 web2", other_vms="db1")),
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
    assert found["restart_order"] == [
        {"priority": 100, "vms": ["web1", "web2"]},
        {"priority": 1, "vms": ["db1"]},
    ]


def test_starts_stand_in_the_order_that_rules_ask_for(asking: StateAsking) -> None:
    (found,) = asking.data(0, "ha-check", *RULED)["clusters"]
    (survival,) = (one for one in found["survivals"] if one["hosts"] == ["n1"])
    assert [home["vm"] for home in survival["homes"]] == ["db1", "web1", "web2"]
    assert [(one["rule"]["name"], one["vms"]) for one in found["not_waiting"]] == [
        ("web-after-db", ["web1", "web2"])
    ]
    late = "placement rule web-after-db: the engine goes by priorities alone, and may restart too early"
    assert f"{late}: web1, web2\n" in asking.text(0, "ha-check", *RULED)
    alike = tuple(part for part in RULED if part.name != "web-after-db")
    assert asking.data(0, "ha-check", *alike)["clusters"][0]["not_waiting"] == []


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
    free = {"ha": True, "needs_mb": 2048}
    vms = [
        vm("low", "n1", **free),
        vm("high", "n1", ha_priority=100, **free),
        vm("middle", "n1", ha_priority=50, ha=True, needs_mb=4096),
    ]
    lines = asking.text(0, "what-if --down node1", BLUE, *HOSTS, *vms).splitlines()
    assert [line.split(" starts")[0] for line in lines if " starts on " in line] == [
        "high (priority 100)",
        "middle (priority 50)",
        "low (priority 1)",
    ]
    lines = asking.text(0, "what-if --down node1", *RULED).splitlines()
    assert [line.split()[0] for line in lines if " starts on " in line] == ["db1", "web1", "web2"]
    found = asking.data(0, "what-if --down node1", BLUE, *HOSTS, *vms)["starts"]
    assert [(start["vm"], start["priority"]) for start in found] == [
        ("high", 100),
        ("middle", 50),
        ("low", 1),
    ]


@pytest.mark.system
def test_a_rule_is_written_shown_and_refused_in_a_circle(starting: Starting, tmp_path: Path) -> None:
    parts = [vm("web1", "n1", ha=True, tags=("web",)), vm("db1", "n2", ha=True), vm("batch", "n2")]
    adding = ("rules", "add")
    with starting(snapshot(BLUE, *HOSTS, *parts)) as live:
        configuration = live.config.read_text().replace("[store]", "max_age_seconds = 0.000001\n[store]")
        live.config.write_text(configuration)
        kind = ("--kind", "restart_after", "--cluster", "blue", "--vms")
        out, _ = live.run(0, *adding, "a", *kind, "tag:web", "--other-vms", "db1")
        assert out == "added a: restart_after, hard\n"
        out, _ = live.run(0, "rules", "show", "a")
        assert "  other VMs (db1): db1\n  violated\n  may restart too early: web1\n" in out
        circle = "the restart order goes in a circle: db1 after web1 (b), web1 after db1 (a)"
        _, err = live.run(2, *adding, "b", *kind, "db1", "--other-vms", "tag:web")
        assert circle in err
        _, err = live.run(2, *adding, "c", *kind, "db1", "--other-vms", "db1")
        assert "the restart order goes in a circle: db1 after db1 (c)" in err
        _, err = live.run(2, *adding, "c", *kind, "batch", "--other-vms", "db1")
        assert "the engine restarts nothing that batch names: it is not highly available" in err
        _, err = live.run(2, *adding, "c", *kind, "web1", "--other-vms", "db1", "--soft")
        assert "a rule of the kind restart_after is neither soft nor satisfied in the end only" in err
        _, err = live.run(2, *adding, "c", *kind, "web1")
        assert "a rule of the kind restart_after needs other_vms" in err
        live.engine.vms.edit("db1", ha_priority=50)
        (one,) = live.data(0, "rules", "list")["rules"]
        assert (one["record"]["satisfied"], one["record"]["offenders"]) == (True, [])
        live.run(0, *adding, "b", *kind, "db1", "--other-vms", "tag:web", "--force")
        out, _ = live.run(1, "rules", "check")
        assert f"b: {circle}\n" in out
        exported = tmp_path / "rules.yaml"
        exported.write_text(live.run(0, "rules", "export")[0])
        live.run(0, "rules", "remove", "a", "b")
        _, err = live.run(2, "rules", "apply", str(exported))
        assert "goes in a circle" in err
        live.run(0, "rules", "apply", str(exported), "--force")
        assert live.run(0, "rules", "export")[0] == exported.read_text()
