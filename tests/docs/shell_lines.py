"""What pages give a shell to do, command by command: of shell blocks, and what stands between backticks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.docs.shown import BLOCK

_PROMPT = re.compile(r"[$#] ")
_INLINE = re.compile(r"`([^`\n]+)`")
_ENDS = {"&&", "||", ";", "|", "&"}
_INTO = {">", ">>", "<"}
_NAMED_SHELL = {"sh", "bash", "shell"}


class Line(NamedTuple):
    page: Path
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}: {self.text}"


class Block(NamedTuple):
    """What stands between fences, or set in."""

    page: Path
    #: As the fence says; "" where it says nothing.
    language: str
    lines: tuple[str, ...]


def blocks(page: Path) -> Iterator[Block]:
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        text = (found[2] or found[3]).replace("\\\n", " ")
        lines = tuple(line.strip() for line in text.splitlines() if line.strip())
        yield Block(page, found[1] or "", lines)


def typed(block: Block, programs: Collection[str]) -> tuple[str, ...]:
    """The lines of a block that somebody types.

    Of a block without a language it is the first word that shows: it must be one of the programs.
    """
    if block.language == "console":
        return tuple(line[2:] for line in block.lines if _PROMPT.match(line))
    if block.language in _NAMED_SHELL:
        return tuple(line for line in block.lines if not line.startswith("#"))
    is_shell = block.language == "" and bool(block.lines) and first_word(block.lines[0]) in programs
    return block.lines if is_shell else ()


def inline(page: Path) -> Iterator[Line]:
    """What stands between backticks, outside of blocks."""
    text = BLOCK.sub("\n", page.read_text(encoding="utf-8"))
    return (Line(page, found) for found in _INLINE.findall(text))


def first_word(line: str) -> str:
    return line.split(maxsplit=1)[0] if line.split() else ""


def simple_commands(line: str) -> list[list[str]]:
    """Split at `&&`, `;` and pipes; without comments, and without what output goes into."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    found: list[list[str]] = [[]]
    skips = False
    for word in lexer:
        if word in _ENDS:
            found.append([])
        elif word in _INTO or skips:
            skips = word in _INTO
        else:
            found[-1].append(word)
    return [command for command in found if command]
