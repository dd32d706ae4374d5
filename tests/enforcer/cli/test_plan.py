"""`ovirt-enforcer make-room` as its user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ovirt_enforcer.cli.main import main
from ovirt_placement.model import Snapshot
from ovirt_placement.model.files import state_file
from tests.builders import APART, CLUSTER, TOGETHER, cluster, group, host, snapshot, vm
from tests.placement.cli.documents import defined

GIB = 1024
FULL = snapshot(
    host("h1", name="alpha", free_mb=2 * GIB),
    host("h2", name="beta", free_mb=3 * GIB),
    vm("v1", "h1", name="web1", needs_mb=2 * GIB),
    vm("v2", "h2", name="web2", needs_mb=8 * GIB),
    vm("v3", name="new", needs_mb=4 * GIB),
    vm("v4", name="huge", needs_mb=64 * GIB),
    vm("v5", name="small"),
    group("g1", APART, "v2 v4", name="databases"),
)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    file = tmp_path / "state.json"
    file.write_bytes(state_file.dumps(FULL))
    return file


def test_the_migrations_are_reported(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["make-room", "new", "--state", str(state)]) == 3
    assert capsys.readouterr().out == (
        "VM new can start on host alpha after 1 migration, no fewer will do:\n"
        "  1. web1 from alpha to beta: makes room for the next steps\n"
    )
    assert main(["make-room", "v3", "--state", str(state), "--json"]) == 3
    said = defined(capsys.readouterr().out, "RoomFound")
    assert (said["vm"]["name"], said["host"]["id"]) == ("new", "h1")


def test_a_vm_that_can_start_needs_none(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["make-room", "small", "--state", str(state)]) == 0
    assert capsys.readouterr().out == "VM small can start on host beta as things are.\n"


def test_where_nothing_helps_each_host_says_why(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["make-room", "huge", "--state", str(state)]) == 4
    said = capsys.readouterr().out
    assert said.startswith("No migrations let VM huge start:\n")
    assert "  beta: " in said
    assert "  alpha: " in said


@pytest.mark.parametrize(("vm_name", "mistake"), [("web1", "runs on host alpha"), ("nobody", "nobody")])
def test_mistakes_are_reported_in_a_line(
    state: Path, capsys: pytest.CaptureFixture[str], vm_name: str, mistake: str
) -> None:
    assert main(["make-room", vm_name, "--state", str(state)]) == 2
    said = capsys.readouterr().err
    assert mistake in said
    assert said.count("\n") == 1


PARTS = (
    host("h1", name="alpha"),
    host("h2", name="beta"),
    vm("a", "h1", name="web"),
    vm("b", "h2", name="db"),
    vm("c", "h1", name="cache"),
    group("g1", TOGETHER, "a b c", name="shop"),
)
ROUND = snapshot(*PARTS, group("g2", APART, "a b", name="parted"))


@pytest.fixture
def given(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


def simulate(path: Path, state: Snapshot, *arguments: str) -> int:
    path.write_bytes(state_file.dumps(state))
    return main(["simulate-policy", "--state", str(path), *arguments])


def test_as_data(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(given, ROUND, "--json") == 3
    (found,) = defined(capsys.readouterr().out, "Simulations")["clusters"]
    assert (found["cluster"], found["outcome"], found["migrations"], found["balance"]) == (
        {"id": CLUSTER, "name": CLUSTER},
        "loop",
        0,
        None,
    )
    assert found["loop"]["groups"] == [{"id": "g1", "name": "shop"}, {"id": "g2", "name": "parted"}]
    assert found["loop"]["groups_needed"] is True
    assert found["loop"]["migrations"][0] == {
        "vm": {"id": "c", "name": "cache"},
        "from": {"id": "h1", "name": "alpha"},
        "to": {"id": "h2", "name": "beta"},
        "by": "engine",
        "units": ["AffinityFilter"],
        "groups": [{"id": "g1", "name": "shop"}],
        "because": "affinity group shop is violated (hard: together)",
    }


def test_what_settles(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(given, snapshot(*PARTS)) == 0
    assert capsys.readouterr().out.endswith(": settles after 1 migration.\n")


def test_one_cluster_of_several(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = snapshot(cluster(), cluster("c2", name="other"), *ROUND.hosts, *ROUND.vms, *ROUND.affinity_groups)
    assert simulate(given, state, "--cluster", "other") == 0
    assert capsys.readouterr().out.startswith("Cluster other ")


def test_want_of_time_is_said(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(given, ROUND, "--deadline", "0.000001") == 4
    assert "not settled after 0 migrations; there was no more time" in capsys.readouterr().out
