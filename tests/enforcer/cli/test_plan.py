"""`make-room`, `simulate-policy` and `maintenance plan` as their user meets them."""

from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ovirt_enforcer.cli import maintenance
from ovirt_placement.model import Snapshot, state_file
from ovirt_placement.store.enforcer.maintenance import HostPhase, MaintenanceRun, RunState
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import APART, CLUSTER, TOGETHER, cluster, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.conftest import Ask, Said
from tests.enforcer.maintenance.stage import host_of_run
from tests.scenarios.stage import START
from tests.stored import run_of

GIB = 1024
Given = Callable[[Snapshot], str]
FULL = snapshot(
    host("h1", name="alpha", free_mb=2 * GIB),
    host("h2", name="beta", free_mb=3 * GIB),
    vm("v1", "h1", name="web1", needs_mb=2 * GIB),
    vm("v2", "h2", name="web2", needs_mb=8 * GIB),
    vm("v3", name="new", needs_mb=4 * GIB),
    vm("v4", name="huge", needs_mb=64 * GIB),
    vm("v5", name="small"),
    vm("v6", name="locked", status="image_locked"),
    group("g1", APART, "v2 v4", name="databases"),
)


@pytest.fixture
def given(tmp_path: Path) -> Given:
    """The option that has a command ask about a state."""
    path = tmp_path / "state.json"

    def write(state: Snapshot) -> str:
        path.write_bytes(state_file.dumps(state))
        return f"--state {path}"

    return write


def test_the_migrations_that_make_room_are_reported(ask: Ask, given: Given) -> None:
    state = given(FULL)
    assert ask(f"make-room new {state}") == Said(
        3,
        "VM new can start on host alpha after 1 migration, no fewer will do:\n"
        "  1. web1 from alpha to beta: makes room for the next steps\n",
    )
    found = ask(f"make-room v3 {state} --json").document("RoomFound")
    assert (found["vm"]["name"], found["host"]["id"]) == ("new", "h1")
    assert ask(f"make-room small {state}") == Said(0, "VM small can start on host beta as things are.\n")
    status, _, complaint = ask(f"make-room locked {state}")
    assert status == 2
    assert "VM locked cannot start now, wherever: its status is image_locked" in complaint


PARTS = (
    host("h1", name="alpha"),
    host("h2", name="beta"),
    vm("a", "h1", name="web"),
    vm("b", "h2", name="db"),
    vm("c", "h1", name="cache"),
    group("g1", TOGETHER, "a b c", name="shop"),
)
ROUND = snapshot(*PARTS, group("g2", APART, "a b", name="parted"))


def test_a_loop_as_data(ask: Ask, given: Given) -> None:
    said = ask(f"simulate-policy {given(ROUND)} --json")
    (found,) = said.document("Simulations")["clusters"]
    loop, of = found.pop("loop"), {"id": CLUSTER, "name": CLUSTER}
    assert said.status == 3
    assert {name: found[name] for name in ("cluster", "outcome", "migrations", "balance")} == {
        "cluster": of,
        "outcome": "loop",
        "migrations": 0,
        "balance": None,
    }
    assert loop["groups"] == [{"id": "g1", "name": "shop"}, {"id": "g2", "name": "parted"}]
    assert loop["groups_needed"] is True
    assert loop["migrations"][0] == {
        "vm": {"id": "c", "name": "cache"},
        "from": {"id": "h1", "name": "alpha"},
        "to": {"id": "h2", "name": "beta"},
        "by": "engine",
        "units": ["AffinityFilter"],
        "groups": [{"id": "g1", "name": "shop"}],
        "because": "affinity group shop is violated (hard: together)",
    }


def test_one_cluster_of_several_is_simulated(ask: Ask, given: Given) -> None:
    state = snapshot(cluster(), cluster("c2", name="other"), *ROUND.hosts, *ROUND.vms, *ROUND.affinity_groups)
    status, said, _ = ask(f"simulate-policy {given(state)} --cluster other")
    assert (status, said.startswith("Cluster other ")) == (0, True)


def test_want_of_time_is_said(ask: Ask, given: Given) -> None:
    status, said, _ = ask(f"simulate-policy {given(ROUND)} --deadline 0.000001")
    assert (status, "not settled after 0 migrations; there was no more time" in said) == (4, True)


BLUE = snapshot(
    host("h1", name="alpha", memory_mb=8 * GIB, free_mb=6 * GIB),
    host("h2", name="beta", memory_mb=8 * GIB, free_mb=7 * GIB),
    host("h3", name="gamma", memory_mb=8 * GIB, free_mb=7 * GIB, spm=True),
    vm("v1", "h1", name="web1", memory_mb=900),
    vm("v2", "h1", name="web2", memory_mb=900),
    vm("v3", "h2", name="web3", memory_mb=900),
    vm("v4", "h3", name="db", memory_mb=900, migratable=False),
)


def test_rounds_moves_and_what_is_in_the_way(ask: Ask, given: Given) -> None:
    assert ask(f"maintenance plan --cluster cluster1 {given(BLUE)}") == Said(
        4,
        "Maintenance in cluster cluster1: 2 hosts in 2 rounds, 3 migrations"
        " (proven: no plan has fewer rounds, nor as many and fewer migrations), about 1.0 h.\n"
        "  Round 1: alpha (2 migrations, about 18 s; then out for 30 min)\n"
        "    1. web1 from alpha to gamma: off a host that is to be empty\n"
        "    2. web2 from alpha to gamma: off a host that is to be empty\n"
        "  Round 2: beta (1 migration, about 18 s; then out for 30 min)\n"
        "    1. web3 from beta to alpha: off a host that is to be empty\n"
        "  No round for gamma:\n"
        "    - db stays where it is: it may not be migrated automatically (pinned, or only its user may)\n"
        "  With --stop db, there is a round for gamma as well.\n",
    )


def test_consent_to_a_stop(ask: Ask, given: Given) -> None:
    status, said, _ = ask(f"maintenance plan --cluster cluster1 --stop db --host-time 1h {given(BLUE)}")
    assert status == 0
    assert "    stopped meanwhile, as you agreed to: db\n" in said
    assert "then out for 1.0 h)\n" in said


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("make-room web1", "VM web1 runs on host alpha already"),
        ("make-room nobody", 'no VM "nobody"'),
        ("maintenance plan", "name hosts, or a cluster with --cluster"),
        ("maintenance plan alpha --cluster cluster1", "name hosts, or a cluster with --cluster and not both"),
        ("maintenance plan alhpa", 'no host "alhpa"; did you mean "alpha"?'),
        ("maintenance plan alpha --stop nobody", 'no VM "nobody"'),
    ],
)
def test_mistakes_are_one_line(ask: Ask, given: Given, line: str, complaint: str) -> None:
    said = ask(f"{line} {given(BLUE)}")
    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1)
    assert complaint in said.err


TWO = (host("h1", memory_mb=8 * GIB, free_mb=5 * GIB), host("h2", memory_mb=8 * GIB, free_mb=5 * GIB))
#: One host may fail now; while another is out, none may.
RESERVED = snapshot(cluster(ha_reservation=True), *TWO, vm("v2", "h2", ha=True))
PINNED = snapshot(*TWO, vm("v1", "h1", migratable=False))


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (RESERVED, "while it is out, v2 would not restart if h2 failed"),
        (PINNED, "v1 stays where it is: it may not be migrated automatically"),
    ],
)
def test_the_reason_is_given(state: Snapshot, why: str, tmp_path: Path, ask: Ask) -> None:
    with closing(serve(Engine.from_snapshot(state, clock=START))) as server:
        write_configuration(tmp_path, server.api_url, more='[enforcer]\nmode = "enforce"\n')
        planned = ask("maintenance plan h1")
        refused = ask("maintenance run h1 --work nothing")
    assert (planned.status, refused.status) == (4, 2)
    reason = refused.err.partition("no round for h1: ")[2].partition("; ovirt-enforcer")[0]
    assert why in reason
    assert f"    - {reason}\n" in planned.out


def test_following_a_run_prints_what_changes_and_not_each_second(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(state: RunState, phase: HostPhase, seconds: float, message: str = "") -> MaintenanceRun:
        host = host_of_run(phase, seconds, name="alpha", message=message)
        return run_of(host, id="r1", cluster_name="blue", state=state, requested_by="root")

    going = [run(RunState.RUNNING, HostPhase.DRAINING, at, "0 of 2 VMs have left") for at in (1, 3, 5)]
    going.append(run(RunState.RUNNING, HostPhase.DRAINING, 7, "1 of 2 VMs has left"))
    looks = iter([*going, run(RunState.DONE, HostPhase.DONE, 0)])
    monkeypatch.setattr(maintenance, "_named", lambda args, run_id: next(looks))
    monkeypatch.setattr(maintenance.time, "sleep", lambda seconds: None)
    assert maintenance._follow(Namespace(json=False), "r1") == 0
    assert capsys.readouterr().out.splitlines() == [
        "Maintenance run r1 of cluster blue: running (by root, 1970-01-01 00:00+00:00)",
        "  alpha is being emptied, for 1 s: 0 of 2 VMs have left",
        "  alpha is being emptied, for 7 s: 1 of 2 VMs has left",
        "Maintenance run r1 of cluster blue: done (by root, 1970-01-01 00:00+00:00)",
        "  alpha is done",
    ]
