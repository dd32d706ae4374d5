"""`keys list` shows all keys, or those of a name, a level, or one object; also of a state file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.cli.main import main
from ovirt_placement.model.files import state_file
from tests.builders import host, vm
from tests.placement.cli.documents import plain
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


class Listing:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._file = folder / "state.json"
        self._file.write_bytes(state_file.dumps(STATE))
        self._capsys = capsys

    def places(self, *arguments: str) -> list[str]:
        return [f"{one['place']} {one['name']}" for one in plain(self.text(*arguments, "--json"))["keys"]]

    def text(self, *arguments: str) -> Any:
        assert main(["keys", "list", *arguments, "--state", str(self._file)]) == 0
        return self._capsys.readouterr().out


@pytest.fixture
def listing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Listing:
    return Listing(tmp_path, capsys)


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
def test_only_what_was_asked_for_is_listed(listing: Listing, arguments: str, found: list[str]) -> None:
    assert listing.places(*arguments.split()) == found


def test_a_file_of_keys_can_be_listed_as_if_it_were_set(listing: Listing, tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text("keys: [{level: server, resource: web, name: NEW, value: 1, weight: 5}]")
    assert listing.places("--keys", str(file)) == ["server web NEW"]
