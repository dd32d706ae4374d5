"""Asks the commands about a recorded state, in this process."""

from typing import NamedTuple

import pytest

from ovirt_enforcer.cli.main import main as enforcer
from ovirt_placement.cli.main import main as placement
from tests.paths import DATA

STATES = DATA / "cases"
_MAIN = {"ovirt-enforcer": enforcer, "ovirt-placement": placement}


class Answered(NamedTuple):
    """What a command printed, and its exit status."""

    status: int
    text: str


class Ask:
    """A command line with `--state NAME` at its end."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, line: str, state: str) -> Answered:
        command, *words = line.split()
        status = _MAIN[command]([*words, "--state", str(STATES / f"{state}.json")])
        return Answered(status, "".join(self._capsys.readouterr()))


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    return Ask(capsys)
