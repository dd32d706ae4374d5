"""Words of a command line: subcommands, the version, and the nearest right word for one that is wrong."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from ovirt_service.decoding import nearest

_CHOICE = re.compile(r"invalid choice: '(?P<given>[^']*)' \(choose from (?P<known>.*)\)")
_UNKNOWN = re.compile(r"unrecognized arguments: (?P<given>-[^\s=]+)")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Fills paragraphs of descriptions to the terminal's width; examples stay as they are written."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("examples:"):
            return super()._fill_text(text, width, indent)
        paragraphs = (" ".join(each.split()) for each in text.strip().split("\n\n"))
        return "\n\n".join("\n".join(self._split_lines(each, width)) for each in paragraphs)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class _Store(argparse._StoreAction):
    """As its base; an option that takes several values keeps those that were given with it before."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest, None)
        if self.option_strings and self.nargs in ("+", "*") and before is not self.default:
            values = [*(before or ()), *values]
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """As its base; subcommands get a parser of this class, too."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": _Help, **options})
        self.register("action", None, _Store)

    def error(self, message: str) -> NoReturn:
        """End with usage and message, and with the subcommand, option or value that was probably meant."""
        super().error(f"{message}{_hint(message, self)}")


def _hint(message: str, parser: argparse.ArgumentParser) -> str:
    if choice := _CHOICE.search(message):
        return nearest(choice["given"], [word.strip(" '") for word in choice["known"].split(",")])
    if unknown := _UNKNOWN.search(message):
        known = set(_options(parser))
        other = "; it is an option of other commands"
        return other if unknown["given"] in known else nearest(unknown["given"], known)
    return ""


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The options of a parser and of its subcommands: the one that complains is the outermost."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _options(inner)


class Subcommand(NamedTuple):
    module: str
    #: Its line in the help of the command.
    summary: str
    #: What adds it, or its name in the module; called with what subcommands are added to, and the summary.
    add: str | Callable[[argparse._SubParsersAction[argparse.ArgumentParser], str], object] = "add_parser"


def add_subcommands(
    parser: argparse.ArgumentParser, known: Mapping[str, Subcommand], given: Sequence[str] | None
) -> None:
    """Add the subcommand that a command line chooses by its words; all, with their options, where it is None.

    Where the words choose none, as `--help`, `--version` or a mistyped one, all are added by name and summary
    alone: what each of them needs takes long to load.
    """
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    # No option of the commands themselves takes a value: the first other word is the subcommand.
    first = next((word for word in given or () if not word.startswith("-")), "")
    if given is None or first in known:
        for each in known.values() if given is None else (known[first],):
            add = getattr(import_module(each.module), each.add) if isinstance(each.add, str) else each.add
            add(subparsers, each.summary)
    else:
        for name, each in known.items():
            subparsers.add_parser(name, help=each.summary)


def add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", action=_Version)


class _Version(argparse._VersionAction):
    """Known for what it is to what makes completions of parsers."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        from importlib.metadata import version

        print(f"{parser.prog} {version('ovirt-placement')}")
        parser.exit()
