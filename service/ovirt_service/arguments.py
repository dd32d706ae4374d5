"""Reads the words of a command line, and names the nearest right one for a word that is wrong."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterator
from typing import Any, NoReturn

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
