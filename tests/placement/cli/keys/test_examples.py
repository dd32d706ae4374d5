"""The commented examples under docs/placement-keys/: they print what they say, and can be imported."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from ovirt_placement.cli.main import main
from ovirt_placement.model.files import state_file
from tests.paths import CHECKOUT
from tests.placement.cli.live_engine import Starting

FOLDER = CHECKOUT / "docs" / "placement-keys"
STATE = FOLDER / "cluster.json"
EXAMPLES = sorted(FOLDER.glob("*.yaml"))


def console_examples(example: Path) -> Iterator[tuple[str, list[str]]]:
    """The commands in its comments, each with the lines that follow it."""
    comments = [line[1:].removeprefix(" ") for line in example.read_text().splitlines() if line[:1] == "#"]
    _, *blocks = "\n".join(comments).split("\n$ ")
    for block in blocks:
        command, *output = block.rstrip().splitlines()
        yield command, output


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_comments_show_what_the_commands_print(
    example: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    shown = list(console_examples(example))
    assert shown
    for command, output in shown:
        assert main(shlex.split(command)[1:]) == 0
        assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == output


@pytest.mark.system
def test_every_example_can_be_imported_and_has_no_mistakes(serving: Starting) -> None:
    with serving(state_file.load(STATE)) as live:
        for example in EXAMPLES:
            live.run(0, "keys", "import", str(example), "--replace")
            live.run(0, "keys", "check")
