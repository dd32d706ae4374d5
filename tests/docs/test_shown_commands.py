"""Every command that a page shows is one, and so is every example of `--help`."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

import pytest

from ovirt_placement.cli.main import main
from tests.docs.parsers import PARSERS, subcommands
from tests.docs.shown import PAGES, commands
from tests.paths import CHECKOUT

SHOWN = [(page, command) for page in PAGES for command in commands(page)]


def words(command: str) -> list[str]:
    """What is typed; what stands in brackets is taken along, and "..." for more of the same left out."""
    return shlex.split(command.replace("[", "").replace("]", "").replace(" ...", ""))


def test_pages_show_commands() -> None:
    assert len(SHOWN) > 60


@pytest.mark.parametrize(
    ("page", "command"), SHOWN, ids=lambda one: one.stem if isinstance(one, Path) else one
)
def test_what_is_shown_is_a_command(
    page: Path, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, *arguments = words(command)
    try:
        args = PARSERS[name].parse_args(arguments)
    except SystemExit:
        pytest.fail(f"{page}: {capsys.readouterr().err}")
    state = getattr(args, "state", None)
    monkeypatch.chdir(CHECKOUT)
    if state is not None and state.exists() and name == "ovirt-placement":
        assert main(arguments) in (0, 1)


@pytest.mark.parametrize(
    "parser",
    [one for name in ("ovirt-placement", "ovirt-enforcer") for one in subcommands(PARSERS[name])],
    ids=lambda parser: parser.prog,
)
def test_help_of_each_command_has_examples(
    parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    """One to four lines, each a command that is parsed and does what the help is about."""
    first, *lines = (parser.epilog or "").rstrip().splitlines() or [""]
    assert first == "examples:"
    assert 1 <= len(lines) <= 4
    for line in lines:
        assert line.startswith(f"  {parser.prog}"), line
        name, *arguments = shlex.split(line.split("> ")[0], comments=True)
        try:
            PARSERS[name].parse_args(arguments)
        except SystemExit:
            pytest.fail(f"{line}: {capsys.readouterr().err}")
