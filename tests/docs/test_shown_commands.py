"""Every command that a page shows is one, and so is every example of `--help`."""

from __future__ import annotations

import argparse
import shlex

import pytest

from ovirt_placement.cli.main import main
from tests.docs.parsers import PARSERS, subcommands
from tests.docs.shown import PAGES, commands
from tests.paths import CHECKOUT

SHOWN = [(page, command) for page in PAGES for command in commands(page)]


def words(command: str) -> list[str]:
    """What is typed; what stands in brackets is taken along, and "..." for more of the same left out."""
    return shlex.split(command.replace("[", "").replace("]", "").replace(" ...", ""))


def parsed(command: str, name: str, arguments: list[str]) -> argparse.Namespace:
    try:
        return PARSERS[name].parse_args(arguments)
    except SystemExit:
        pytest.fail(f"{command}: what the parser says is printed")


def test_what_is_shown_is_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(SHOWN) > 60
    monkeypatch.chdir(CHECKOUT)
    for page, command in SHOWN:
        name, *arguments = words(command)
        state = getattr(parsed(f"{page}: {command}", name, arguments), "state", None)
        if state is not None and state.exists() and name == "ovirt-placement":
            assert main(arguments) in (0, 1), (page, command)


@pytest.mark.parametrize("command", ["ovirt-placement", "ovirt-enforcer"])
def test_help_of_each_command_has_examples(command: str) -> None:
    """One to four lines, each a command that is parsed and does what the help is about."""
    for parser in subcommands(PARSERS[command]):
        first, *lines = (parser.epilog or "").rstrip().splitlines() or [""]
        assert (first, 1 <= len(lines) <= 4) == ("examples:", True), parser.prog
        for line in lines:
            assert line.startswith(f"  {parser.prog}"), line
            name, *arguments = shlex.split(line.split("> ")[0], comments=True)
            parsed(line, name, arguments)
