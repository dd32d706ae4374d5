"""`ovirt-placement status`: what is known of each cluster, how fresh it is, and whether its rules hold."""

from __future__ import annotations

import argparse

from ovirt_placement import config
from ovirt_placement.answers import sections
from ovirt_placement.answers.status import HEADERS, StatusDocument, lines, of_engine, of_file, rows, status
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.question import add_cluster, add_question, clusters_of, show, show_json

DESCRIPTION = """\
Show each cluster with its hosts, VMs and affinity groups, how many of its rules are broken, and where all
this is known from. When the engine is away, what was known last, with its age; the exit status is 1 then,
and where a section of the configuration is wrong.
"""

EXAMPLES = """\
  ovirt-placement status
  ovirt-placement status --json --timeout 5      # for a monitor
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        subparsers, "status", "what is known of each cluster, and how fresh it is", DESCRIPTION, run, EXAMPLES
    )
    add_cluster(parser)
    add_question(parser)


def run(args: argparse.Namespace) -> int:
    mistakes: tuple[str, ...] = ()
    if args.state is not None:
        known = of_file(args.state)
    else:
        configuration = config.load(args.config)
        known = of_engine(configuration, args.timeout)
        mistakes = tuple(sections.complaints(configuration))
    answer = status(known, clusters_of(args, known.snapshot), mistakes)
    if args.json:
        show_json(answer)
    else:
        _show(answer)
    return int(not answer.well)


def _show(answer: StatusDocument) -> None:
    print("\n".join(lines(answer)))
    if answer.source.kind != "nothing":
        print()
        if answer.clusters:
            show(rows(answer), HEADERS)
        else:
            print("There is no cluster.")
    for mistake in answer.mistakes:
        print(f"\nA command will not start: {mistake}")
