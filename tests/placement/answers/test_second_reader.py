"""What commands print, a second reader of the same records shows as well: text knows nothing else."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest

from ovirt_enforcer.cli.main import main as enforcer
from ovirt_placement.cli.main import main as placement
from ovirt_placement.model import Snapshot, state_file
from tests.builders import APART, CLUSTER, TOGETHER, cluster, group, host, vm
from tests.placement.rules.placement_keys.nodes import keyed, node_key

from .second_reader import QUESTIONS, page_of

STATE = keyed(
    cluster(ha_reservation=True),
    host("h1", name="alpha", free_mb=700),
    host("h2", name="beta", free_mb=2048),
    host("h3", name="gamma", free_mb=9000, status="maintenance"),
    vm("a", "h1", name="db <1>", ha=True, needs_mb=4096),
    vm("b", "h1", name="db & 2", ha=True),
    vm("c", "h2", name="web"),
    vm("d", name="idle"),
    group("g1", APART, "a b", name="databases"),
    group("g2", TOGETHER, "b c", name="near"),
    group("g4", APART, "b c", name="far"),
    group("g3", vms="c d", hosts="h1", hosts_rule=TOGETHER, name="licensed"),
    keys=(node_key("h1", "RACK", 2.0),),
)
COMMANDS = {
    "why": ["why", "idle", "--all"],
    "where": ["where", "idle"],
    "violations": ["violations", "--all"],
    "conflicts": ["conflicts", "--all"],
    "ha-check": ["ha-check", "--cluster", CLUSTER, "--all"],
    "groups": ["groups", "list", "--all"],
    "keys": ["keys", "list"],
    "plan": ["plan"],
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with page_of(STATE) as found:
        yield found


def test_every_question_of_the_page_is_a_command() -> None:
    assert COMMANDS.keys() == QUESTIONS.keys()


class Readers:
    """A command and the page, asked the same."""

    def __init__(self, address: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._address, self._capsys, self._file = address, capsys, folder / "state.json"
        self._file.write_bytes(state_file.dumps(STATE))

    def printed(self, question: str, *but: str, options: tuple[str, ...] = ()) -> str:
        main = enforcer if question == "plan" else placement
        words = [word for word in COMMANDS[question] if word not in but]
        assert main([*words, *options, "--state", str(self._file)]) in (0, 1, 3, 4)
        return self._capsys.readouterr().out

    def page(self, question: str) -> str:
        with urllib.request.urlopen(f"{self._address}/{question}/{quote('idle')}") as answer:
            return unescape(answer.read().decode())


@pytest.fixture
def readers(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Readers:
    return Readers(address, tmp_path, capsys)


@pytest.mark.parametrize("question", COMMANDS)
def test_the_page_shows_what_the_command_prints(question: str, readers: Readers) -> None:
    text, page = readers.printed(question), readers.page(question)
    said = {name for name in names(STATE) if name in text}
    assert said
    assert {name for name in said if name not in page} == set()
    assert {number for number in re.findall(r"\b\d{3,}\b", text) if number not in page} == set()


@pytest.mark.parametrize("question", COMMANDS)
def test_json_is_the_very_record(question: str, readers: Readers) -> None:
    document = json.loads(readers.printed(question, "--all", options=("--json",)))
    page = readers.page(question)
    assert {word for word in leaves(document) if word not in page} == set()


def names(state: Snapshot) -> set[str]:
    found = (*state.clusters, *state.hosts, *state.vms, *state.affinity_groups)
    return {one.name for one in found}


def leaves(document: object) -> Iterator[str]:
    """All that stands in a document but for numbers that are measured."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield key
            yield from leaves(value)
    elif isinstance(document, list):
        for value in document:
            yield from leaves(value)
    elif isinstance(document, str):
        yield document
