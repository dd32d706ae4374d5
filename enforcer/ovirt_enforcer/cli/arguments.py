"""Arguments that several subcommands take, and the state that commands are asked about."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

from ovirt_enforcer.plans import Asked
from ovirt_placement import config as configuration
from ovirt_placement.answers.question import Parameter
from ovirt_placement.cli import asking
from ovirt_placement.cli.asking import PATIENCE_SECONDS
from ovirt_placement.model import state_file
from ovirt_placement.model.maintenance import Return
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair

Word = TypeVar("Word", bound=StrEnum)
_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def add_state(parser: argparse.ArgumentParser) -> None:
    asking.add_state(parser)
    parser.set_defaults(stale=False, timeout=asking.PATIENCE_SECONDS)


def add_return(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--return",
        dest="back",
        type=word_of(Return),
        choices=tuple(Return),
        default=Return.NONE,
        help="which VMs go back in the end: none (default), ruled (of satisfied soft rules), or all",
    )


def duration(given: str) -> float:
    """Read 90s, 15m, 2h or 7d; return seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", given)
    if match is None:
        raise argparse.ArgumentTypeError(f"{given!r} is no time such as 90s, 15m, 2h or 7d")
    return float(match[1]) * _UNIT_SECONDS[match[2]]


def _repair(given: str) -> frozenset[Repair]:
    try:
        return frozenset(Repair(word.strip()) for word in given.split(","))
    except ValueError:
        raise ValueError(f"{given!r} is neither hard nor soft nor partly, nor such as hard,soft") from None


REPAIR = Parameter(
    help="which rules are repaired (default: as configured, else hard)",
    metavar="hard,soft",
    argument={"type": _repair},
)


def deadline_parameter(text: str) -> Parameter:
    """How long planning may take, in seconds."""
    return Parameter(help=text, metavar="SECONDS", argument={"type": asking.seconds})


def word_of(words: type[Word]) -> Callable[[str], Word]:
    """Reads one of some words."""

    def read(given: str) -> Word:
        try:
            return words(given)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{given!r} is none of {', '.join(words)}") from None

    return read


def asked(args: argparse.Namespace) -> Asked:
    """By the rules and capacity alone with `--state`; else by the configuration, and what is held back now.

    With `--config` besides, reservations of a state file are restored where that says so. Raises `UserError`.
    """
    if args.state is not None:
        options = PlanOptions(repair=args.repair) if args.repair else PlanOptions()
        snapshot = state_file.load(args.state)
        if args.config is not None:
            from ovirt_enforcer.plans import failure_domains
            from ovirt_enforcer.settings import EnforcerSettings

            config = configuration.load(args.config)
            settings = config.section("enforcer", EnforcerSettings)
            domains = failure_domains(config.ha, snapshot)
            reserve = settings.ha.repair and domains is not None
            options = replace(options, reserve=reserve, domains=domains or ())
        return Asked(snapshot, options)
    # The SDK and SQLAlchemy take long to load: not for a state file.
    from ovirt_enforcer.engine_state import read_engine_state

    found = read_engine_state(configuration.load(args.config), PATIENCE_SECONDS)
    return replace(found, options=replace(found.options, repair=args.repair)) if args.repair else found
