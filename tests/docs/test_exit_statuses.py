"""The page of exit statuses has what each command says of its own."""

from __future__ import annotations

import argparse
import re

from tests.docs.parsers import PARSERS, subcommands
from tests.paths import CHECKOUT

PAGE = (CHECKOUT / "docs" / "json.md").read_text()
ROWS = re.findall(r"^\| (\d+) \| (.*?) \|", PAGE, re.MULTILINE)
_REPORTED = re.compile(r"exit status(?: is|:) (.*)", re.IGNORECASE | re.DOTALL)


def said(parser: argparse.ArgumentParser) -> set[str]:
    """The statuses of which a command's help shows."""
    found = _REPORTED.search(parser.description or "")
    return set(re.findall(r"\b[0-4]\b(?= )", found[1])) if found else set()


REPORTING = [one for parser in PARSERS.values() for one in subcommands(parser) if said(one)]


def test_each_status_that_a_command_reports_stands_in_the_table() -> None:
    assert len(REPORTING) > 8
    for parser in REPORTING:
        name = parser.prog.partition(" ")[2]
        for status in said(parser):
            named = [commands for number, commands in ROWS if number == status]
            assert any(commands == "all" or f"{name}`" in commands for commands in named), (name, status)
