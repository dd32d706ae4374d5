"""`ovirt-enforcer make-room` as its user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ovirt_enforcer.cli.main import main
from ovirt_placement.model import state_file
from tests.builders import APART, group, host, snapshot, vm
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


def test_a_vm_that_can_start_needs_none(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["make-room", "small", "--state", str(state)]) == 0
    assert capsys.readouterr().out == "VM small can start on host beta as things are.\n"


def test_where_nothing_helps_each_host_says_why(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["make-room", "huge", "--state", str(state)]) == 4
    said = capsys.readouterr().out
    assert said.startswith("No migrations let VM huge start:\n")
    assert "  beta: " in said
    assert "  alpha: " in said


def test_programs_get_data(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["make-room", "v3", "--state", str(state), "--json"]) == 3
    said = defined(capsys.readouterr().out, "RoomFound")
    assert said["vm"] == {"id": "v3", "name": "new"}
    assert said["host"] == {"id": "h1", "name": "alpha"}
    assert said["plan"]["migrations"] == 1
    assert said["plan"]["steps"][0]["to"]["id"] == "h2"


@pytest.mark.parametrize(("vm_name", "mistake"), [("web1", "runs on host alpha"), ("nobody", "nobody")])
def test_mistakes_are_reported_in_a_line(
    state: Path, capsys: pytest.CaptureFixture[str], vm_name: str, mistake: str
) -> None:
    assert main(["make-room", vm_name, "--state", str(state)]) == 2
    said = capsys.readouterr().err
    assert mistake in said
    assert said.count("\n") == 1
