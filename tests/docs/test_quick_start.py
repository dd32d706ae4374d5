"""The quick start: without a configuration its commands print what stands there, and change nothing."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import trustme

from ovirt_placement.config_file import PATH_VARIABLE
from ovirt_placement.model.files import state_file
from tests.docs.parsers import COMMANDS
from tests.paths import CHECKOUT
from tests.placement.cli.live_engine import PASSWORD, live_engine

TEXT = (CHECKOUT / "docs" / "quick-start.md").read_text()
#: Each command of ours, with what is printed.
SHOWN = re.findall(r"^\$ \.venv/bin/(ovirt-\S+ [^\n]*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
#: Status: nothing to say, violated, a plan repairs all.
STATUSES = {"violations": 1, "why": 0, "plan": 3, "conflicts": 1, "what-if": 0}


def test_the_commands_print_what_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {command.split()[1] for command, _ in SHOWN} == STATUSES.keys()
    (exported,) = re.findall(r"^\$ export (.*)$", TEXT, re.MULTILINE)
    state = state_file.load(CHECKOUT / "docs" / "first-look.json")
    with live_engine(state, tmp_path, capsys, monkeypatch) as live:
        monkeypatch.delenv(PATH_VARIABLE, raising=False)
        monkeypatch.chdir(tmp_path)
        trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        here = {"OVIRT_URL": live.server.api_url, "OVIRT_USERNAME": "admin@internal"}
        for name, _, value in (word.partition("=") for word in shlex.split(exported)):
            monkeypatch.setenv(name, here.get(name, value))
        monkeypatch.setenv("OVIRT_PASSWORD", PASSWORD)
        for command, expected in SHOWN:
            name, *words = shlex.split(command)
            assert COMMANDS[name](words) == STATUSES[words[0]]
            printed = capsys.readouterr()
            assert (command, printed.err, _lines(printed.out)) == (command, "", _lines(expected))
        assert live.changes == []


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]
