"""The pages of the enforcer name all that there is: every gate and command."""

from __future__ import annotations

import re

import pytest

from ovirt_enforcer.cli import main
from ovirt_enforcer.gates.admission import GATES
from tests.paths import CHECKOUT

FOLDER = CHECKOUT / "docs" / "enforcer"
ALL_PAGES = "\n".join(page.read_text() for page in (CHECKOUT / "docs" / "enforcer.md", *FOLDER.glob("*.md")))
#: Rows of tables: the first cell, and the second.
ROW = re.compile(r"^\| (.*?) \| (.*?) \|", re.MULTILINE)


def rows(page: str) -> dict[str, str]:
    """Words in code in the first cells of a page's tables, with what stands next to them."""
    found = ROW.findall((FOLDER / page).read_text())
    return {word: alongside for cell, alongside in found for word in re.findall(r"`(\w+)[`{]", cell)}


def test_every_gate_has_its_row() -> None:
    assert rows("gates.md").keys() >= {gate.name for gate in GATES}


def test_every_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["--help"])
    commands = re.findall(r"^    ([a-z][a-z-]+)", capsys.readouterr().out, re.MULTILINE)
    assert len(commands) > 8
    assert [command for command in commands if f"ovirt-enforcer {command}" not in ALL_PAGES] == []
