"""Commands about a state that is made of parts, run as an administrator runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.cli.main import main
from ovirt_placement.model import Snapshot
from ovirt_placement.model.files import state_file
from tests.builders import Part, snapshot
from tests.placement.cli.documents import plain


class StateAsking:
    """Runs a command on a state, whole or in parts, and gives what it printed."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys = folder, capsys
        #: What stands in the configuration.
        self.configuration = ""

    def run(self, status: int, command: str, *parts: Part | Snapshot) -> tuple[str, str]:
        """Run a command that must end with this status; what it printed, and its complaints."""
        state, config = self._folder / "state.json", self._folder / "placement.toml"
        (whole,) = parts if len(parts) == 1 and isinstance(parts[0], Snapshot) else (snapshot(*parts),)
        state.write_bytes(state_file.dumps(whole))
        config.write_text(self.configuration)
        words = [*command.split(), "--state", str(state), "--config", str(config)]
        self._capsys.readouterr()
        found = main(words)
        printed = self._capsys.readouterr()
        assert found == status, printed
        return printed.out, printed.err

    def text(self, status: int, command: str, *parts: Part | Snapshot) -> str:
        return "".join(self.run(status, command, *parts))

    def lines(self, status: int, command: str, *parts: Part | Snapshot) -> list[str]:
        """What is printed, without padding."""
        return [" ".join(line.split()) for line in self.text(status, command, *parts).splitlines()]

    def rows(self, status: int, command: str, *parts: Part | Snapshot) -> list[list[str]]:
        """The cells of the table's rows, below its title."""
        return [cells(line) for line in self.text(status, command, *parts).splitlines()[2:]]

    def verdicts(
        self, status: int, command: str, *parts: Part | Snapshot
    ) -> tuple[list[list[str]], list[str]]:
        """The rows of a table, and the lines below it after an empty one."""
        table, _, below = self.text(status, command, *parts).partition("\n\n")
        return [cells(line) for line in table.splitlines()[2:]], below.splitlines()

    def data(self, status: int, command: str, *parts: Part | Snapshot) -> Any:
        return plain(self.text(status, f"{command} --json", *parts))


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]
