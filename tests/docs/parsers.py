"""The parsers of all commands, for pages that are made from them and for tests of what pages show."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ovirt_enforcer.cli import main as enforcer
from ovirt_placement.cli import main as placement
from ovirt_placement_web import cli as web
from ovirt_scheduler_proxy import cli as proxy
from ovirt_simulator import cli as simulator

PARSERS: dict[str, argparse.ArgumentParser] = {
    module.COMMAND: module._parser() for module in (placement, enforcer, web, proxy, simulator)
}


def subcommands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser itself if it does something, else those of its subcommands; all in their order."""
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield parser
    for group in groups:
        for child in dict.fromkeys(group.choices.values()):
            yield from subcommands(child)


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
