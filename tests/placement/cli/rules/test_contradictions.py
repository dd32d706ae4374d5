"""Rules that contradict groups, keys and one another: refused, reported by name, and written by force."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ovirt_placement.model import RuleDomain
from ovirt_placement.model.files import state_file
from tests.builders import APART, TOGETHER, cluster, group, host, rule, snapshot, vm
from tests.placement.cli.documents import plain
from tests.placement.cli.live_engine import LiveEngine
from tests.placement.planning.test_without_or_tools import WITHOUT

RACKS = ("--domain", "r1=h1,h2", "r2=h3")
STATE = snapshot(
    cluster("c1", name="blue"),
    *(host(name, cluster="c1") for name in ("h1", "h2", "h3")),
    *(vm(name, cluster="c1") for name in ("web1", "web2", "web3", "db1")),
    group("apart", APART, "web1 web2 web3", cluster="c1", name="web-apart"),
    group("db", TOGETHER, "db1 web1", cluster="c1", name="db-near"),
)  # fmt: skip
ONE_RACK = ("rules", "add", "one-rack", "--kind", "same_domain", "--cluster", "blue", *RACKS, "--vms")
NAMED = {"id": "rule:one-rack", "name": "one-rack", "is_rule": True}
CLASH = "affinity group web-apart, placement rule one-rack cannot be satisfied together"


def rules(live: LiveEngine) -> list[str]:
    return [one["record"]["rule"]["name"] for one in live.data(0, "rules", "list")["rules"]]


def test_a_rule_that_a_group_contradicts_is_refused_by_name(live: LiveEngine) -> None:
    _, err = live.run(2, *ONE_RACK, "web1", "web2", "web3")
    assert f"{CLASH}; --force writes it nevertheless" in err
    assert rules(live) == []
    live.run(0, *ONE_RACK, "web1", "web2")
    assert "No mistakes in 1 placement rules." in live.run(0, "rules", "check")[0]
    assert (
        live.run(0, "conflicts")[0]
        == "No affinity groups clash, and all hard rules can be satisfied together.\n"
    )


def test_with_force_it_is_written_and_every_command_names_the_set(live: LiveEngine) -> None:
    out, _ = live.run(0, *ONE_RACK, "web1", "web2", "web3", "--force")
    assert f"note: {CLASH}" in out
    assert live.run(1, "rules", "check")[0] == f"{CLASH}\n"
    (of_check,) = live.data(1, "rules", "check")["contradictions"]
    (of_cluster,) = live.data(1, "conflicts")["clusters"]
    assert of_cluster["contradictions"] == [of_check]
    assert of_check["groups"] == ["apart", NAMED]
    assert (of_check["smallest"], of_check["memory"], of_cluster["feasible"]) == (True, False, False)
    out, _ = live.run(1, "conflicts", "--group", "one-rack")
    assert "cannot be satisfied together" in out
    assert "placement rule one-rack" in out
    assert live.run(0, "conflicts", "--group", "db-near")[0] == "No conflict concerns db-near.\n"


def test_a_rule_that_stands_is_named_with_the_one_that_is_added(live: LiveEngine, tmp_path: Path) -> None:
    live.run(0, *ONE_RACK, "web1", "web2")
    words = ("rules", "add", "off", "--kind", "exclusive_hosts", "--cluster", "blue", "--vms", "web3")
    _, err = live.run(2, *words, "--hosts", "h1")
    assert "affinity group web-apart, placement rule off, placement rule one-rack cannot be satisfied" in err
    out, _ = live.run(0, *words, "--hosts", "h1", "--what-if")
    assert "placement rule one-rack cannot be satisfied together" in out
    file = tmp_path / "rules.yaml"
    off = {"name": "off", "kind": "exclusive_hosts", "cluster": "blue", "vms": ["web3"], "hosts": ["h1"]}
    file.write_text(yaml.safe_dump({"rules": [off]}))
    live.run(2, "rules", "import", str(file))
    live.run(0, "rules", "apply", str(file))
    assert rules(live) == ["off"]


def test_a_rule_of_others_that_contradicts_is_no_reason_to_refuse(live: LiveEngine) -> None:
    live.run(0, *ONE_RACK, "web1", "web2", "web3", "--force")
    few = "rules add few --kind at_most_per_host --cluster blue --vms db1 --most 1"
    live.run(0, *few.split())
    assert rules(live) == ["few", "one-rack"]


def test_a_group_that_a_rule_contradicts_is_warned_of(live: LiveEngine) -> None:
    live.run(0, *ONE_RACK, "db1", "web2")
    words = ("--cluster", "blue", "--hosts-rule", "positive", "--hosts-enforcing", "--vm", "web2")
    _, err = live.run(0, "groups", "add", "far", *words, "--host", "h1")
    assert "cannot be satisfied" not in err
    _, err = live.run(0, "groups", "add", "near", *words[:-1], "db1", "--host", "h3")
    named = "affinity group far, affinity group near, placement rule one-rack"
    assert f"these hard rules cannot be satisfied together: {named}" in err


@pytest.mark.system
def test_without_or_tools_it_is_said_what_is_not_proven(tmp_path: Path) -> None:
    clash = rule("one-rack", "same_domain", "web1 web2 web3", cluster="c1", domains=(
        RuleDomain(name="r1", hosts=("h1", "h2")), RuleDomain(name="r2", hosts=("h3",)),
    ))  # fmt: skip
    path = tmp_path / "state.json"
    path.write_bytes(
        state_file.dumps(snapshot(*STATE.clusters, *STATE.hosts, *STATE.vms, *STATE.affinity_groups, clash))
    )

    def ran(status: int, *words: str) -> str:
        code = WITHOUT.replace("ovirt_enforcer", "ovirt_placement")
        command = [sys.executable, "-c", code, *words, "--state", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (status, "")
        return done.stdout

    assert "needs OR-Tools: install ovirt-placement[planner]" in ran(1, "conflicts", "--all")
    (found,) = plain(ran(1, "conflicts", "--json"))["clusters"]
    assert (found["feasible"], found["contradictions"]) == (None, [])
    assert found["unjudged"] == [["apart", "db", NAMED]]
    assert "affinity group web-apart, affinity group db-near, placement rule one-rack (needs OR-Tools" in ran(
        0, "rules", "check"
    )
