"""`what-if --maintenance`: what it says comes true in an engine, and nothing is written by asking."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from tests.builders import APART, TOGETHER, cluster, group, host, snapshot, vm
from tests.placement.cli.live_engine import Starting
from tests.placement.cli.state_asking import StateAsking

GIB = 1024
STATE = snapshot(
    cluster("c1", name="blue"),
    *(
        host(name, cluster="c1", name=f"node{name[1]}", memory_mb=32 * GIB, free_mb=free * GIB, cores=8)
        for name, free in (("h1", 20), ("h2", 28), ("h3", 24))
    ),
    *(
        vm(name, at, cluster="c1", name=f"web-{name}", needs_mb=4 * GIB, guaranteed_mb=4 * GIB, ha=True)
        for name, at in (("a", "h1"), ("b", "h1"), ("c", "h2"), ("d", "h3"))
    ),
    group("near", TOGETHER, "a b", cluster="c1"),
    group("far", APART, "a d", cluster="c1"),
)


def pinned(state: Snapshot, name: str) -> Snapshot:
    vms = tuple(replace(one, migratable=False) if one.id == name else one for one in state.vms)
    return replace(state, vms=vms)


def test_an_engine_finds_the_host_empty_and_no_rule_violated(serving: Starting) -> None:
    with serving(STATE) as live:
        found = live.data(0, "what-if", "--maintenance", "node1")
        assert live.changes == []
        (maintenance,) = found["maintenance"]
        assert (maintenance["hosts"], maintenance["staying"], maintenance["proven"]) == (["h1"], [], True)
        assert [(move["vms"], move["to"], move["closure"]) for move in maintenance["moves"]] == [
            (["a", "b"], "h2", True)
        ]
        live.engine.vms.migrate("a", host_id="h2", closure=True)
        live.engine.advance(maintenance["seconds"])
        live.engine.hosts.deactivate("h1")
        live.engine.advance(60)
        after = live.engine.snapshot()
        assert after.host_by_id["h1"].status == "maintenance"
        assert {one.id: one.host for one in after.vms} == {"a": "h2", "b": "h2", "c": "h2", "d": "h3"}
        live.run(0, "violations")


def test_failures_are_counted_without_the_host(serving: Starting) -> None:
    with serving(STATE) as live:
        (blue,) = live.data(0, "what-if", "--maintenance", "node2")["clusters"]
        assert blue["failures_now"] == {"count": 1, "exact": True}
        assert blue["failures_changed"] == {"count": 0, "exact": True}


def test_what_cannot_leave_is_an_exit_status(serving: Starting) -> None:
    with serving(pinned(STATE, "b")) as live:
        asked = ("what-if", "--maintenance", "node1", "--fail-if", "staying")
        found = live.data(3, *asked)
        assert found["fails"] == ["staying>0 (2)"]
        staying = {one["vm"]: one["because"] for one in found["maintenance"][0]["staying"]}
        assert staying["b"] == ["it may not be migrated automatically (pinned, or only its user may)"]
        assert "web-a must also run together (affinity group near)" in staying["a"]
        out, _ = live.run(3, *asked)
        assert "Maintenance of node1 in cluster blue: 2 VMs cannot leave; the others need no migr" in out
        assert "  web-b cannot leave node1:\n" in out


def test_hosts_fail_while_others_are_in_maintenance(asking: StateAsking) -> None:
    asked = "what-if --maintenance node3 --down node2 --fail-if unplaced"
    assert "web-d finds no host" in asking.text(3, asked, STATE)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("--maintenance node9", 'no host "node9"'),
        ("--maintenance node1 --down h1", "node1 cannot both go into maintenance and fail"),
    ],
)
def test_what_cannot_be_asked_is_refused(asking: StateAsking, arguments: str, complaint: str) -> None:
    assert complaint in asking.run(2, f"what-if {arguments}", STATE)[1]
