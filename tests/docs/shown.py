"""What pages show to be typed at a shell, and the parsers of the commands of ours in it."""

import argparse
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ovirt_enforcer.cli import main as enforcer
from ovirt_placement.cli import main as placement
from ovirt_placement_web import cli as web
from ovirt_scheduler_proxy import cli as proxy
from ovirt_simulator import cli as simulator
from tests.paths import CHECKOUT

PARSERS: dict[str, argparse.ArgumentParser] = {
    module.COMMAND: module._parser() for module in (placement, enforcer, web, proxy, simulator)
}
#: What asks and changes an engine or a store: commands that end.
COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {one.COMMAND: one.main for one in (placement, enforcer)}


def every(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser itself and those of its subcommands, in their order."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in dict.fromkeys(action.choices.values()):
                yield from every(child)


def subcommands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Of these, those that do something."""
    return (one for one in every(parser) if one._subparsers is None)


def summaries(parser: argparse.ArgumentParser) -> dict[str, str]:
    """What the list of subcommands says of each, by its whole name."""
    found: dict[str, str] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            reported = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, child in action.choices.items():
                found[child.prog] = reported.get(name, "")
                found.update(summaries(child))
    return found


#: The reference shows how commands are built, not what to type.
PAGES = [
    CHECKOUT / "README.md",
    *(page for page in sorted((CHECKOUT / "docs").rglob("*.md")) if page.name != "commands.md"),
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```|(?<=\n)\n((?:    [^\n]*\n)+)", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(rf"\s*(?:[$#] )?(?:\.venv/bin/)?((?:{'|'.join(PARSERS)})\s.*)")


def commands(page: Path) -> Iterator[str]:
    """Each command, with what follows a backslash, without a comment and what its output goes into."""
    for found in BLOCK.finditer(page.read_text()):
        lines = (found[2] or found[3]).replace("\\\n", " ").splitlines()
        if found[1] not in (None, "", "console", "sh", "text"):
            continue
        if found[3] and not _COMMAND.fullmatch(lines[0]):
            continue  # of a list, what goes on after a paragraph is set in, too
        for line in lines:
            match = _COMMAND.fullmatch(line)
            if match:
                yield re.split(r"\s(?:#(?= )|[|>&;])", match[1], maxsplit=1)[0].strip()


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


# -- Blocks with what commands print.
def section(page: Path, title: str) -> str:
    """What stands below a heading."""
    (found,) = (part for part in page.read_text().split("\n## ") if part.startswith(f"{title}\n"))
    return found


def fenced(text: str, language: str = "") -> list[str]:
    """The blocks in this language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [block for named, block in found if named == language]


def printed(block_texts: Iterable[str]) -> list[tuple[str, list[str]]]:
    """The commands that blocks show, each with the lines that it prints, in order."""
    parts = [part for block in block_texts for part in f"\n{block}".split("\n$ ")[1:]]
    found = (part.replace("\\\n", "").partition("\n") for part in parts)
    return [(" ".join(command.split()), lines_of(output)) for command, _, output in found]


def lines_of(text: str) -> list[str]:
    """What is printed, to be compared."""
    return [line.rstrip() for line in text.strip().splitlines()]
