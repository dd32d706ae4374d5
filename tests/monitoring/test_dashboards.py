"""The dashboards: each metric on a panel, each expression valid for Prometheus, each graph with a unit."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.metrics import all_metrics
from tests.paths import CHECKOUT

FOLDER = CHECKOUT / "packaging" / "monitoring"
BOARDS: dict[str, dict[str, Any]] = {
    path.name: json.loads(path.read_text()) for path in sorted((FOLDER / "dashboards").glob("*.json"))
}


def expressions(board: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def test_each_metric_is_on_a_panel() -> None:
    shown = {
        name for board in BOARDS.values() for one in expressions(board) for name in re.findall(r"\w+", one)
    }
    assert [one.name for one in all_metrics() if shown.isdisjoint(one.series)] == []


@pytest.mark.parametrize("name", BOARDS)
def test_a_panel_has_a_title_a_unit_a_source_and_lines(name: str) -> None:
    board = BOARDS[name]
    assert name == f"{board['uid']}.json"
    for panel in board["panels"]:
        assert panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["targets"]
    places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
    assert len(set(places)) == len(places)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool")
def test_prometheus_takes_every_expression(tmp_path: Path) -> None:
    """As rules that record, with what Grafana puts in place of its variables."""
    asked = {one for board in BOARDS.values() for one in expressions(board)}
    filled = (one.replace("$__rate_interval", "1m").replace("$instance", ".*") for one in sorted(asked))
    rules = [{"record": f"shown:{number}", "expr": one} for number, one in enumerate(filled)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "shown", "rules": rules}]}))
    command = ["promtool", "check", "rules", str(file)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"{len(asked)} rules found" in found.stdout


def test_grafana_is_pointed_to_where_the_dashboards_are_installed() -> None:
    (provider,) = yaml.safe_load((FOLDER / "grafana-provisioning.yaml").read_text())["providers"]
    assert provider["options"]["path"] == "/usr/share/ovirt-placement/monitoring/dashboards"
