"""`ovirt-enforcer maintenance plan` as its user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ovirt_enforcer.cli.main import main
from ovirt_placement.model import state_file
from tests.builders import host, snapshot, vm
from tests.placement.cli.documents import defined

GIB = 1024
BLUE = snapshot(
    host("h1", name="alpha", memory_mb=8 * GIB, free_mb=6 * GIB),
    host("h2", name="beta", memory_mb=8 * GIB, free_mb=7 * GIB),
    host("h3", name="gamma", memory_mb=8 * GIB, free_mb=7 * GIB, spm=True),
    vm("v1", "h1", name="web1", memory_mb=900),
    vm("v2", "h1", name="web2", memory_mb=900),
    vm("v3", "h2", name="web3", memory_mb=900),
    vm("v4", "h3", name="db", memory_mb=900, migratable=False),
)
PLAN = ["maintenance", "plan"]


@pytest.fixture
def state(tmp_path: Path) -> str:
    file = tmp_path / "state.json"
    file.write_bytes(state_file.dumps(BLUE))
    return str(file)


def test_rounds_moves_and_what_is_in_the_way(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PLAN, "--cluster", "cluster1", "--state", state]) == 4
    assert capsys.readouterr().out == (
        "Maintenance in cluster cluster1: 2 hosts in 2 rounds, 3 migrations"
        " (proven: no plan has fewer rounds, nor as many and fewer migrations), about 1.0 h.\n"
        "  Round 1: alpha (2 migrations, about 18 s; then out for 30 min)\n"
        "    1. web1 from alpha to gamma: off a host that is to be empty\n"
        "    2. web2 from alpha to gamma: off a host that is to be empty\n"
        "  Round 2: beta (1 migration, about 18 s; then out for 30 min)\n"
        "    1. web3 from beta to alpha: off a host that is to be empty\n"
        "  No round for gamma:\n"
        "    - db stays where it is: it may not be migrated automatically (pinned, or only its user may)\n"
        "  With --stop db, there is a round for gamma as well.\n"
    )


def test_consent_to_a_stop(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = [*PLAN, "--cluster", "cluster1", "--stop", "db", "--host-time", "1h"]
    assert main([*given, "--state", state]) == 0
    said = capsys.readouterr().out
    assert "    stopped meanwhile, as you agreed to: db\n" in said
    assert "then out for 1.0 h)\n" in said


def test_data_meet_the_schema(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PLAN, "alpha", "--state", state, "--json"]) == 0
    document = defined(capsys.readouterr().out, "MaintenancePlans")
    (found,) = document["clusters"]
    assert [one["hosts"][0]["name"] for one in found["rounds"]] == ["alpha"]
    assert found["proven"]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ([], "name hosts, or a cluster with --cluster"),
        (["alpha", "--cluster", "cluster1"], "name hosts, or a cluster with --cluster and not both"),
        (["alhpa"], 'no host "alhpa"; did you mean "alpha"?'),
        (["alpha", "--stop", "nobody"], 'no VM "nobody"'),
    ],
)
def test_mistakes(state: str, given: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PLAN, *given, "--state", state]) == 2
    assert complaint in capsys.readouterr().err
