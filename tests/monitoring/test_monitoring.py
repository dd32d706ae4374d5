"""Alert rules, by Prometheus' own promtool: each waits, fires, and is quiet else; and the dashboards."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.metrics import all_metrics
from tests.monitoring.cases import CASES, Case
from tests.paths import CHECKOUT

FOLDER = CHECKOUT / "packaging" / "monitoring"
RULES = FOLDER / "rules.yaml"
ALERTS = {one["alert"]: one for each in yaml.safe_load(RULES.read_text())["groups"] for one in each["rules"]}
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool")
MONITORING = CHECKOUT / "docs/monitoring.md"
PAGE = "file:///usr/share/doc/ovirt-placement/docs/trouble.md"


def promtool(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = ["promtool", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def outcome(folder: Path, alert: str, case: Case, labels: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What promtool finds, if the alert is to have these labels."""
    rule = ALERTS[alert]
    said = {**rule["annotations"], "summary": case.summary}
    fired = [{"exp_labels": {**rule["labels"], **labels}, "exp_annotations": said}]
    tests: list[dict[str, Any]] = [
        {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
            "alert_rule_test": [
                {"eval_time": f"{case.minutes[0]}m", "alertname": alert},
                {"eval_time": f"{case.minutes[1]}m", "alertname": alert, "exp_alerts": fired},
            ],
        },
        {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in case.never.items()],
            "alert_rule_test": [
                {"eval_time": f"{minute}m", "alertname": alert} for minute in (10, 45, 60, case.minutes[1])
            ],
        },
    ]
    file = folder / "test.yaml"
    document = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}
    file.write_text(yaml.safe_dump(document))
    return promtool("test", "rules", file)


def test_each_alert_has_its_case() -> None:
    assert ALERTS.keys() == CASES.keys()


@pytest.mark.system
@needs_promtool
@pytest.mark.parametrize("alert", ALERTS)
def test_it_fires_when_it_should_and_not_before(alert: str, tmp_path: Path) -> None:
    found = outcome(tmp_path, alert, CASES[alert], dict(CASES[alert].labels))
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.system
@needs_promtool
def test_promtool_notices_an_alert_that_is_another_one(tmp_path: Path) -> None:
    alert = "OvirtPlacementHaNotSafe"
    assert outcome(tmp_path, alert, CASES[alert], {"cluster": "red"}).returncode != 0


@pytest.mark.system
@needs_promtool
def test_promtool_finds_no_fault_with_the_file() -> None:
    found = promtool("check", "rules", RULES)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("alert", ALERTS)
def test_it_asks_for_metrics_that_are_kept_and_leads_to_what_to_do(alert: str) -> None:
    rule = ALERTS[alert]
    known = {series for one in all_metrics() for series in one.series}
    asked = set(re.findall(r"\bovirt_\w+", rule["expr"]))
    assert asked <= known
    (line,) = re.findall(f"^\\| {rule['labels']['severity']} .*$", MONITORING.read_text(), re.MULTILINE)
    assert f"`{alert.removeprefix('OvirtPlacement')}`" in line
    page, anchor = rule["annotations"]["runbook_url"].split("#")
    assert page == PAGE
    headings = re.findall(r"^## (.+)$", (CHECKOUT / "docs" / "trouble.md").read_text(), re.MULTILINE)
    assert anchor in {heading.lower().replace(" ", "-") for heading in headings}


# -- The dashboards: each metric on a panel, each expression valid for Prometheus, each graph with a unit.
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


@needs_promtool
def test_prometheus_takes_every_expression(tmp_path: Path) -> None:
    """As rules that record, with what Grafana puts in place of its variables."""
    asked = {one for board in BOARDS.values() for one in expressions(board)}
    filled = (one.replace("$__rate_interval", "1m").replace("$instance", ".*") for one in sorted(asked))
    rules = [{"record": f"shown:{number}", "expr": one} for number, one in enumerate(filled)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "shown", "rules": rules}]}))
    found = promtool("check", "rules", file)
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"{len(asked)} rules found" in found.stdout


def test_grafana_is_pointed_to_where_the_dashboards_are_installed() -> None:
    (provider,) = yaml.safe_load((FOLDER / "grafana-provisioning.yaml").read_text())["providers"]
    assert provider["options"]["path"] == "/usr/share/ovirt-placement/monitoring/dashboards"
