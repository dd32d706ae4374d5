"""Licensed hosts on a small cluster: every command of the page prints what stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ovirt_placement.model.files import state_file
from tests.docs.parsers import COMMANDS
from tests.docs.recipes.page import FOLDER, shown
from tests.placement.cli.live_engine import live_engine

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def alike(text: str) -> list[str]:
    """Lines without what differs from one run to another."""
    return [_ID.sub("ID", line.rstrip()) for line in text.strip().splitlines()]


def test_the_commands_print_what_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    walked = shown("Licensed hosts on a small cluster")
    assert len(walked) > 4
    state = state_file.load(FOLDER / "licensed.json")
    with live_engine(state, tmp_path, capsys, monkeypatch) as live:
        monkeypatch.setenv("OVIRT_PLACEMENT_CONFIG", str(live.config))
        for command, expected in walked:
            name, *words = shlex.split(command)
            COMMANDS[name](words)
            printed = capsys.readouterr()
            assert (command, alike(printed.out + printed.err)) == (command, alike(expected))
