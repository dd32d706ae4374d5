"""`--what-if` and `--fail-if` of commands that change something: look before anything is written."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ovirt_placement.cli.question import show_answer

if TYPE_CHECKING:
    from ovirt_placement.answers.what_if import WhatIfDocument

#: The exit status where a condition of `--fail-if` holds.
FAILS = 3
#: How long migrations are planned.
_SECONDS = 30.0


def add_foresight(parser: argparse.ArgumentParser) -> None:
    """Add both options, and which rules the enforcer is thought to repair."""
    parser.add_argument(
        "--what-if",
        action="store_true",
        help="write nothing; show the effect: violations, migrations, survived failures (docs/what-if.md)",
    )
    add_fail_if(parser, "write nothing, and exit with status 3, if any of these is true")
    parser.set_defaults(known_age_seconds=None)  # a change is judged by what is fresh
    add_repair(parser)


def add_fail_if(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument(
        "--fail-if",
        type=_conditions,
        default=(),
        metavar="violated,moves>5,failures<1",
        help=f"{text}: violated, conflicts, unplaced, moves, staying, failures",
    )


def add_repair(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--repair",
        type=_repair,
        default="hard",
        metavar="hard,soft",
        help="the rules whose repair is counted; else hard",
    )


def stops(args: argparse.Namespace, look: Callable[[], WhatIfDocument]) -> int | None:
    """The exit status, where the command is to write nothing; None where it is to go on.

    What would come of it is reported if that was asked, or if a condition holds.
    """
    if not (args.what_if or args.fail_if):
        return None
    fails = show_foreseen(args, look(), always=args.what_if)
    if fails:
        return FAILS
    return 0 if args.what_if else None


def show_foreseen(args: argparse.Namespace, found: WhatIfDocument, *, always: bool = True) -> bool:
    """Print what would come of a change; whether a condition of `--fail-if` holds."""
    from ovirt_placement.answers.what_if import lines, measures
    from ovirt_placement.forecast.changes import holding

    fails = holding(args.fail_if, measures(found))
    if not (always or fails):
        return False
    answer = replace(found, fails=fails)
    if args.json:
        show_answer(args, answer)
    else:
        print("\n".join(lines(answer)))
    return bool(fails)


def planning(args: argparse.Namespace) -> dict[str, Any]:
    """How migrations are planned, for `foresee`."""
    from ovirt_placement.planning.deadline import Deadline

    return {"repair": args.repair, "deadline": Deadline.after(_SECONDS)}


def _conditions(text: str) -> Any:
    from ovirt_placement.forecast.changes import conditions_of

    try:
        return conditions_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _repair(text: str) -> Any:
    from ovirt_placement.planning.problem.build_problem import Repair

    try:
        return frozenset(Repair(word.strip()) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is neither hard nor soft nor hard,soft') from None
