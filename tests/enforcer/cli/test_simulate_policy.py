"""`simulate-policy` as its user meets it: text, data, exit statuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from ovirt_enforcer.cli.main import main
from ovirt_placement.model import Snapshot, state_file
from tests.builders import APART, CLUSTER, TOGETHER, cluster, group, host, snapshot, vm
from tests.placement.cli.documents import defined

PARTS = (
    host("h1", name="alpha"),
    host("h2", name="beta"),
    vm("a", "h1", name="web"),
    vm("b", "h2", name="db"),
    vm("c", "h1", name="cache"),
    group("g1", TOGETHER, "a b c", name="shop"),
)
ROUND = snapshot(*PARTS, group("g2", APART, "a b", name="parted"))

TEXT = """\
Cluster cluster1 (the enforcer and the engine's affinity enforcement and no balance that is known): a LOOP: \
after 0 migrations come 2 migrations again and again.
  1. cache from alpha to beta by the engine's affinity enforcement (AffinityFilter): \
affinity group shop is violated (hard: together)
  2. cache from beta to alpha by the engine's affinity enforcement (AffinityFilter): \
affinity group shop is violated (hard: together)
  Made by: affinity group shop, affinity group parted, AffinityFilter
"""


@pytest.fixture
def given(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


def simulate(path: Path, state: Snapshot, *arguments: str) -> int:
    path.write_bytes(state_file.dumps(state))
    return main(["simulate-policy", "--state", str(path), *arguments])


def test_a_loop_is_reported_with_names(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(given, ROUND) == 3
    assert capsys.readouterr().out == TEXT


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
