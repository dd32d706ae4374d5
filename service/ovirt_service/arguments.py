"""Reads the words of a command line, and names the nearest right one for a word that is wrong."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import NoReturn

from ovirt_service.decoding import nearest

_CHOICE = re.compile(r"invalid choice: '(?P<given>[^']*)' \(choose from (?P<known>.*)\)")
_UNKNOWN = re.compile(r"unrecognized arguments: (?P<given>-[^\s=]+)")


class Parser(argparse.ArgumentParser):
    """As its base; subcommands get a parser of this class, too."""

    def error(self, message: str) -> NoReturn:
        """End with usage and message, and with the subcommand, option or value that was probably meant."""
        super().error(f"{message}{_hint(message, self)}")


def _hint(message: str, parser: argparse.ArgumentParser) -> str:
    if choice := _CHOICE.search(message):
        return nearest(choice["given"], [word.strip(" '") for word in choice["known"].split(",")])
    if unknown := _UNKNOWN.search(message):
        return nearest(unknown["given"], set(_options(parser)))
    return ""


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The options of a parser and of its subcommands: the one that complains is the outermost."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _options(inner)
