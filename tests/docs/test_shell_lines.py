"""Each command that a page shows is ours, and tried by other tests here, or follows its program's rule."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.parsers import PARSERS
from tests.docs.shell_lines import Block, Line, blocks, first_word, inline, simple_commands, typed
from tests.docs.shell_rules import RULES, follows_rule
from tests.docs.shown import PAGES

PROGRAMS = {*PARSERS, *RULES}


def unprefixed(line: str) -> str:
    return line.removeprefix(".venv/bin/")


def lines_of(page: Path) -> Iterator[Line]:
    for block in blocks(page):
        yield from (Line(page, unprefixed(line)) for line in typed(block, PROGRAMS))
    yield from (line for line in inline(page) if first_word(line.text) in RULES and " " in line.text)


def check(line: Line) -> None:
    """Raise `AssertionError` at a command without a rule, or against it."""
    for program, *words in simple_commands(line.text):
        if program not in PARSERS:
            assert program in RULES, f"{line}: {program} has no rule in tests/docs/shell_rules.py"
            assert follows_rule(program, words), line


def test_every_command_of_a_page_follows_its_rule() -> None:
    for page in PAGES:
        for line in lines_of(page):
            check(line)


def test_no_block_hides_what_is_typed() -> None:
    """What is not typed begins with no program: a page says of each block whether it is for a shell."""
    for block in (block for page in PAGES for block in blocks(page)):
        if block.language == "console":
            assert typed(block, PROGRAMS), block
        elif block.language == "" and not typed(block, PROGRAMS):
            hidden = [one for one in block.lines if first_word(one) in PROGRAMS or is_a_program(one)]
            assert hidden == [], block


def is_a_program(line: str) -> bool:
    word = first_word(line)
    return word.islower() and " -" in line and shutil.which(word) is not None


def test_every_rule_is_needed() -> None:
    shown = {first_word(one.text) for page in PAGES for one in lines_of(page)}
    later = {program for page in PAGES for one in lines_of(page) for program, *_ in simple_commands(one.text)}
    assert RULES.keys() - shown - later == set()


@pytest.mark.parametrize(
    "wrong",
    [
        "systemctl enable --now ovirt-placement-inventroy",
        "make tset",
        "python3.12 -m pip install '.[postgres]'",
        "engine-config -s ExternalScheduler=true",
        "install -m 600 -g ovirt packaging/ovirt-placement.toml /etc/ovirt-placement/ovirt-placement.toml",
        "true && wget http://example.com",
    ],
)
def test_what_is_wrong_is_noticed(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        check(Line(tmp_path, wrong))


def test_a_console_block_needs_a_prompt(tmp_path: Path) -> None:
    assert typed(Block(tmp_path, "console", ("# make demo", "out")), PROGRAMS) == ("make demo",)
    assert typed(Block(tmp_path, "", ("make demo", "make test")), PROGRAMS) == ("make demo", "make test")
    assert typed(Block(tmp_path, "", ("cluster blue: 1 migration",)), PROGRAMS) == ()
