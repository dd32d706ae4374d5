"""Arguments that several subcommands take, and the state that commands are asked about."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from ovirt_enforcer.plans import Asked
from ovirt_placement import config as configuration
from ovirt_placement.answers.question import Parameter
from ovirt_placement.cli import questions
from ovirt_placement.cli.questions import PATIENCE_SECONDS, Reading, add_config, add_json
from ovirt_placement.inventory.publication import Measured
from ovirt_placement.model import state_file
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair

if TYPE_CHECKING:
    from ovirt_enforcer.history import KnownHistory

Word = TypeVar("Word", bound=StrEnum)
_DAY_SECONDS: Final = 24 * 3600.0
_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def add_state(parser: argparse.ArgumentParser) -> None:
    questions.add_state(parser)
    parser.set_defaults(stale=False, timeout=questions.PATIENCE_SECONDS)


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
    return Parameter(help=text, metavar="SECONDS", argument={"type": questions.seconds})


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


def _add_reading(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    add_json(parser)
    parser.set_defaults(all=True)


def _add_state_reading(parser: argparse.ArgumentParser) -> None:
    add_state(parser)
    _add_reading(parser)


def _read_known(args: argparse.Namespace, _: Measured) -> KnownHistory:
    # They take long to load: not for other questions.
    from ovirt_enforcer.engine_state import read_engine_state
    from ovirt_enforcer.history import KnownHistory
    from ovirt_enforcer.settings import recorded_settings
    from ovirt_enforcer.stores import Stores
    from ovirt_placement.answers.status import not_led
    from ovirt_placement.store.enforcer.leader import differences

    config = configuration.load(args.config)
    found = read_engine_state(config, PATIENCE_SECONDS)
    with closing(Stores(config, create=False)) as stores:
        there = stores.settings.of_leader()
        other: tuple[str, ...] = ()
        if found.settings is not None and there is not None:
            other = differences(there, "here", recorded_settings(found.settings))
        return KnownHistory(
            snapshot=found.snapshot,
            frozen=found.holding.frozen,
            held_groups=found.holding.spared,
            plans=stores.history.plans(since_seconds=_DAY_SECONDS),
            under_way=stores.intents.open_intents(),
            ended=stores.intents.history(within_seconds=_DAY_SECONDS),
            not_led=not_led(config),
            other_settings=other,
        )


#: How each question is read for its command.
READINGS: Final = {
    "plan": Reading(lambda args, _: asked(args), _add_state_reading),
    "simulate-policy": Reading(lambda args, _: asked(args), _add_state_reading),
    "make-room": Reading(questions.read_measured, _add_state_reading),
    "why-not": Reading(_read_known, _add_reading),
}
