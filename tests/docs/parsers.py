"""The parsers of all commands, for pages that are made from them and for tests of what pages show."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence

from ovirt_enforcer.cli import main as enforcer
from ovirt_placement.cli import main as placement
from ovirt_placement_web import cli as web
from ovirt_scheduler_proxy import cli as proxy
from ovirt_simulator import cli as simulator

PARSERS: dict[str, argparse.ArgumentParser] = {
    module.COMMAND: module._parser() for module in (placement, enforcer, web, proxy, simulator)
}
#: What asks and changes an engine or a store: commands that end.
COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    module.COMMAND: module.main for module in (placement, enforcer)
}


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
