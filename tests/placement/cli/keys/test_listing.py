"""`keys list` shows all keys, or those of a name, a level, or one object; also of a state file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import host, vm
from tests.placement.cli.state_asking import StateAsking
from tests.placement.rules.placement_keys.nodes import key, keyed, node_key

STATE = keyed(
    host("h1", name="north"),
    host("h2", name="south"),
    vm("v1", name="web"),
    keys=(
        key("GEN", 1.0, 5.0, "cluster", resource="cluster1"),
        node_key("h1", "GEN", 1.0),
        node_key("h2", "GEN", 2.0),
        node_key("h1", "SAN", 1.0),
        key("SAN", 1.0, 5.0, "server", resource="v1"),
    ),
)


def places(asking: StateAsking, arguments: str) -> list[str]:
    found = asking.data(0, f"keys list {arguments}", STATE)["keys"]
    return [f"{one['place']} {one['name']}" for one in found]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (
            "",
            ["cluster cluster1 GEN", "node north GEN", "node south GEN", "node north SAN", "server web SAN"],
        ),
        ("--name GEN", ["cluster cluster1 GEN", "node north GEN", "node south GEN"]),
        ("--on node", ["node north GEN", "node south GEN", "node north SAN"]),
        ("--on node north", ["node north GEN", "node north SAN"]),
        ("--on node h2 --name GEN", ["node south GEN"]),
        ("--on image", []),
        ("--name Gen", []),
    ],
)
def test_only_what_was_asked_for_is_listed(asking: StateAsking, arguments: str, found: list[str]) -> None:
    assert places(asking, arguments) == found


def test_a_file_of_keys_can_be_listed_as_if_it_were_set(asking: StateAsking, tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text("keys: [{level: server, resource: web, name: NEW, value: 1, weight: 5}]")
    assert places(asking, f"--keys {file}") == ["server web NEW"]
