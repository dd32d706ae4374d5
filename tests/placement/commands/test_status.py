"""`status` on a state file, on what an inventory publishes, and on an engine that nobody follows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ovirt_placement import statefile
from ovirt_placement.cli import main
from tests.builders import APART, SOFT_APART, TOGETHER, group, host, snapshot, vm
from tests.placement.commands.live_engine import live_engine
from tests.plugins.published import Publisher

STATE = snapshot(
    host("h1"),
    host("h2"),
    host("h3", status="maintenance"),
    vm("v1", "h1", ha=True),
    vm("v2", "h2"),
    vm("v3", "h2", status="migrating"),
    vm("v4"),
    group("split", TOGETHER, "v1 v2"),
    group("crowded", SOFT_APART, "v2 v3"),
    group("kept", APART, "v1 v3"),
)
IN_NUMBERS = {
    "cluster": "cluster1",
    "hosts": 3,
    "hosts_up": 2,
    "vms": 4,
    "vms_running": 3,
    "vms_on_their_way": 1,
    "vms_highly_available": 1,
    "groups": 3,
    "hard_violations": 1,
    "soft_violations": 1,
}


def test_a_state_file_in_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "state.json"
    file.write_bytes(statefile.dumps(STATE))
    assert main(["status", "--state", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["clusters"] == [IN_NUMBERS]
    assert (found["source"]["kind"], found["source"]["where"]) == ("state file", str(file))
    assert main(["status", "--state", str(file)]) == 0
    told, _, _, _, row = capsys.readouterr().out.splitlines()
    assert told == f"Known from the state file {file}."
    assert row.split()[:4] == ["cluster1", "2", "of", "3"]
    assert row.endswith("1 hard, 1 soft")


def test_an_engine_that_nobody_follows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with live_engine(snapshot(host("h1"), vm("v1", "h1")), tmp_path, capsys, monkeypatch) as live:
        found = live.data(0, "status")
        assert (found["source"]["kind"], found["source"]["where"]) == ("engine", live.server.api_url)
        (cluster,) = found["clusters"]
        assert (cluster["hosts_up"], cluster["vms_running"]) == (1, 1)


def test_what_an_inventory_publishes_comes_with_its_ages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publisher = Publisher(tmp_path)
    publisher.publish(STATE)
    assert main(["status", "--config", str(publisher.config), "--json"]) == 0
    source = json.loads(capsys.readouterr().out)["source"]
    assert source["kind"] == "inventory"
    assert 0 <= source["age_seconds"] < 10
    assert main(["status", "--config", str(publisher.config)]) == 0
    assert "asked what changed" in capsys.readouterr().out
