"""Commands that ask, made from the questions, and the arguments and the printing that all commands share."""

from __future__ import annotations

import argparse
import json
import logging
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import msgspec

from ovirt_placement import config
from ovirt_placement.answers import question
from ovirt_placement.answers.document import (
    MOST_NAMES,
    MOST_ROWS,
    Document,
    Folded,
    Shown,
    Table,
    dated,
    known_state,
)
from ovirt_placement.config_file import DEFAULT_PATH, PATH_VARIABLE
from ovirt_placement.inventory.publication import Measured
from ovirt_placement.model import Snapshot, state_file
from ovirt_placement.model.record import Record
from ovirt_service.text import show_lines, table

#: How long a command waits for the engine, in seconds, by default: ten thousand VMs take a while.
PATIENCE_SECONDS = 120.0

#: Reads what a question is about: its first argument, in which words name something if it has a snapshot.
Reader = Callable[[argparse.Namespace, Measured], object]

_log = logging.getLogger(__name__)


# -- Arguments that several subcommands share, so that they read the same everywhere.
def add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help=f"configuration (TOML); else ${PATH_VARIABLE}, else {DEFAULT_PATH}, else the variables"
        " OVIRT_URL, OVIRT_USERNAME, OVIRT_PASSWORD, OVIRT_TOKEN, OVIRT_CAFILE and OVIRT_INSECURE alone",
    )


def add_change(parser: argparse.ArgumentParser) -> None:
    """Add what every command has that changes something: `--dry-run`, and `--json`."""
    parser.add_argument("--dry-run", action="store_true", help="check, show the change, and write nothing")
    add_json(parser)
    parser.set_defaults(changes=True)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json.md)")


def add_command(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    description: str,
    run: Callable[[argparse.Namespace], int],
    examples: str = "",
) -> argparse.ArgumentParser:
    """Add a command, or an action of one; description and examples stand in `--help` as they are written."""
    parser = subparsers.add_parser(
        name, help=summary, description=description, epilog=f"examples:\n{examples}" if examples else None
    )
    parser.set_defaults(run=run)
    return parser


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}": a whole number, at least 1')
    return int(text)


# -- Commands of questions.
class Reading(NamedTuple):
    """How the command of a question reads what it is about, and the options of that."""

    read: Reader
    add_options: Callable[[argparse.ArgumentParser], None] = lambda parser: add_question(parser)


def add_questions(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], reading: Reading, *names: str
) -> None:
    """Add an action for each of these questions, about a state that is read so."""
    for name in names:
        add_question_command(subparsers, question.question_named(name), reading=reading)


def add_question_command(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    asked: question.Question,
    summary: str = "",
    *,
    examples: str = "",
    reading: Reading | None = None,
) -> None:
    reading = reading or _READINGS[asked.reads]
    parser = add_command(
        subparsers,
        asked.name.rpartition(" ")[2],
        summary or asked.summary,
        asked.description,
        partial(ask, asked, reading.read),
        examples or asked.examples,
    )
    one_of: dict[str, argparse._MutuallyExclusiveGroup] = {}
    for word, (parameter, hint, default) in asked.parameters.items():
        if parameter.common is None:
            add_parameter(parser, word, parameter, hint, default, one_of)
    for word, option in asked.options.items():
        add_parameter(parser, word, option, one_of=one_of)
    parser.set_defaults(answers=True, known_age_seconds=None)
    reading.add_options(parser)


def add_parameter(
    parser: argparse.ArgumentParser,
    word: str,
    parameter: question.Parameter,
    hint: Any = None,
    default: Any = None,
    one_of: dict[str, argparse._MutuallyExclusiveGroup] | None = None,
) -> None:
    """Add an argument for a parameter; `one_of` has the groups of those that exclude each other."""
    given = {"help": parameter.help, "metavar": parameter.metavar}
    keywords: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    to: argparse._ActionsContainer = parser
    if parameter.one_of is not None and one_of is not None:
        if parameter.one_of not in one_of:
            one_of[parameter.one_of] = parser.add_mutually_exclusive_group()
        to = one_of[parameter.one_of]
    argument = dict(parameter.argument)
    if isinstance(argument.get("type"), FunctionType):
        argument["type"] = partial(_read_word, argument["type"])
    if parameter.positional:
        if parameter.every:
            keywords["nargs"] = "?"
        to.add_argument(word, **{**keywords, **argument})
        return
    option = parameter.option or f"--{word.replace('_', '-')}"
    if parameter.given is not None or hint is bool:
        keywords["action"] = "store_true"
    elif int in (hint, *getattr(hint, "__args__", ())):
        keywords |= {"type": positive, "default": default}
    to.add_argument(option, dest=word, **{**keywords, **argument})


def _read_word(read: Callable[[str], Any], text: str) -> Any:
    """Read a word of a command line, whose mistake is said as it is."""
    try:
        return read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def ask(asked: question.Question, read: Reader, args: argparse.Namespace) -> int:
    words = vars(args)
    state = read(args, asked.needs(words))
    snapshot = state if isinstance(state, Snapshot) else getattr(state, "snapshot", None)
    answer = asked.ask(state, **asked.arguments(words, snapshot))
    shown = Shown(args.all, words, state)
    if args.json:
        show_answer(args, answer)
    else:
        show_text(asked.text(answer, shown), whole=args.all)
    return asked.status(answer, shown)


def show_text(text: Iterable[str | Table], *, whole: bool = True) -> None:
    """Print the lines and tables of an answer; unless it is wanted whole, no more than a person reads."""
    for part in text:
        if isinstance(part, Table) and (whole or part.whole):
            print(table(part.rows, part.headers))
        elif isinstance(part, Table):
            _show_table(part)
        elif isinstance(part, Folded):
            show_lines([part])
        else:
            print(part)


def add_question(parser: argparse.ArgumentParser) -> None:
    """Add `--state`, `--config`, `--json`, `--stale`, `--timeout` and `--all`."""
    add_state(parser)
    add_config(parser)
    add_json(parser)
    parser.add_argument(
        "--stale",
        action="store_true",
        help="when the engine is away, answer by the last known state, however old",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        default=PATIENCE_SECONDS,
        help=f"how long to wait for the engine; else {PATIENCE_SECONDS:g}",
    )
    parser.add_argument("--all", action="store_true", help="all rows and names, however many")
    parser.set_defaults(answers=True, known_age_seconds=None)


def add_keyed_question(parser: argparse.ArgumentParser) -> None:
    """The same, and `--keys`."""
    add_question(parser)
    parser.add_argument(
        "--keys", type=Path, metavar="FILE", help="try the keys of this YAML file in place of all others"
    )


def _add_configuration(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    add_json(parser)
    # What only root may look at is looked at first.
    parser.set_defaults(remains_root=True, all=False)


def add_state(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="answer for this cluster state file instead of the engine"
    )


def seconds(text: str) -> float:
    """A time to wait, as an option gives it."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f'"{text}": a number of seconds greater than 0')
    return number


def read_state(
    args: argparse.Namespace, max_age: float | None = None, measured: Measured = Measured.FOR_RESERVATION
) -> Snapshot:
    """The state file named, else what the inventory publishes, else the engine itself.

    With `max_age`, at most this many seconds old; else as old as the configuration allows. With `--stale`, as
    old as it may be where nothing newer is to be had. What `measured` does not ask for may be lacking.
    """
    if args.state is not None:
        return state_file.load(args.state)
    found = known_state(
        config.load(args.config), deadline=args.timeout, max_age=max_age, measured=measured, stale=args.stale
    )
    args.known_age_seconds = found.age_seconds
    if found.age_seconds is not None:
        _log.warning("this is %.0f s old: %s", found.age_seconds, found.error)
    return found.known.snapshot


def read_measured(args: argparse.Namespace, measured: Measured) -> Snapshot:
    return read_state(args, measured=measured)


def _read_configured(args: argparse.Namespace, measured: Measured) -> question.ConfiguredState:
    known = read_state(args, measured=measured)
    return question.ConfiguredState(known, lambda: config.load(args.config), live=args.state is None)


def _read_health(args: argparse.Namespace, _: Measured) -> object:
    from ovirt_placement.answers.status.health import health_of_engine, health_of_file

    if args.state is not None:
        return health_of_file(args.state, None if args.config is None else config.load(args.config))
    return health_of_engine(config.load(args.config), args.timeout)


_READINGS: Mapping[question.Reads, Reading] = {
    question.Reads.STATE: Reading(read_measured),
    question.Reads.CONFIGURED: Reading(_read_configured),
    question.Reads.HEALTH: Reading(_read_health),
    question.Reads.CONFIGURATION: Reading(lambda args, _: config.load(args.config), _add_configuration),
}


def _show_table(part: Table) -> None:
    """Print no more of it than a person reads."""
    print(table([[_cut(str(cell)) for cell in row] for row in part.rows[:MOST_ROWS]], part.headers))
    if len(part.rows) > MOST_ROWS:
        print(f"... and {len(part.rows) - MOST_ROWS} more rows: --all shows them")


def show_answer(args: argparse.Namespace, answer: Record) -> None:
    """Print the answer to a question as JSON, with its age if it is of old."""
    show_json(dated(answer, args.known_age_seconds) if isinstance(answer, Document) else answer)


def show_json(answer: Any) -> None:
    """Print an answer as JSON; what the output's encoding lacks stands as escapes of JSON."""
    reported = msgspec.to_builtins(answer)
    ascii_only = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8"
    print(json.dumps(reported, indent=2, ensure_ascii=ascii_only))


def show_file(args: argparse.Namespace, content: object) -> int:
    """Print the content of a file: as YAML, or as JSON if that is wanted."""
    if args.json:
        show_json(content)
    else:
        from ovirt_placement.model import yaml_files  # takes long to load

        print(yaml_files.encode(content), end="")
    return 0


def _cut(cell: str) -> str:
    lines = cell.split("\n")
    if len(lines) <= MOST_NAMES:
        return cell
    return "\n".join([*lines[: MOST_NAMES - 1], f"and {len(lines) - MOST_NAMES + 1} more"])
