"""Commands that ask, made from the questions: options, where the state comes from, how answers print."""

from __future__ import annotations

import argparse
import json
import logging
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ovirt_placement import config
from ovirt_placement.answers.document import MOST_NAMES, Document, dated, find, known_state
from ovirt_placement.answers.question import (
    MOST_ROWS,
    Folded,
    Parameter,
    Question,
    Reads,
    Shown,
    Table,
    question_named,
)
from ovirt_placement.cli.arguments import add_command, add_config, add_json, positive
from ovirt_placement.inventory import Measured
from ovirt_placement.model import Cluster, Snapshot, state_file
from ovirt_service import tables

#: How long a command waits for the engine, in seconds, by default: ten thousand VMs take a while.
PATIENCE_SECONDS = 120.0

#: Reads what a question is about: its first argument, and the state in which words name something.
Reader = Callable[[argparse.Namespace, Measured], "tuple[object, Snapshot | None]"]

_log = logging.getLogger(__name__)


def add_questions(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], read: Reader, *names: str
) -> None:
    """Add an action for each of these questions, about a state that is read so."""
    for name in names:
        add_question_command(subparsers, name, read=read)


def add_question_command(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str = "",
    read: Reader | None = None,
) -> argparse.ArgumentParser:
    """Add the command that asks a question, with all its options."""
    asked = question_named(name)
    parser = add_command(
        subparsers,
        name.rpartition(" ")[2],
        summary or asked.summary,
        asked.description,
        partial(ask, asked, read or _READERS[asked.reads]),
        asked.examples,
    )
    one_of: dict[str, argparse._MutuallyExclusiveGroup] = {}
    for word, (parameter, hint, default) in asked.parameters.items():
        if parameter.common is None:
            _add_parameter(parser, one_of, word, parameter, hint, default)
    for word, option in asked.options.items():
        _add_parameter(parser, one_of, word, option, bool, False)
    if asked.reads is Reads.CONFIGURATION:
        add_config(parser)
        add_json(parser)
        # What only root may look at is looked at first.
        parser.set_defaults(answers=True, remains_root=True, all=False, known_age_seconds=None)
        return parser
    add_question(parser)
    if asked.reads is Reads.KEYS:
        add_keys(parser)
    return parser


def _add_parameter(
    parser: argparse.ArgumentParser,
    one_of: dict[str, argparse._MutuallyExclusiveGroup],
    word: str,
    parameter: Parameter,
    hint: Any,
    default: Any,
) -> None:
    given = {"help": parameter.help, "metavar": parameter.metavar}
    keywords: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    to: argparse._ActionsContainer = parser
    if parameter.one_of is not None:
        if parameter.one_of not in one_of:
            one_of[parameter.one_of] = parser.add_mutually_exclusive_group()
        to = one_of[parameter.one_of]
    if parameter.positional:
        if parameter.every:
            keywords["nargs"] = "?"
        to.add_argument(word, **{**keywords, **parameter.argument})
        return
    option = parameter.option or f"--{word.replace('_', '-')}"
    if parameter.given is not None or hint is bool:
        keywords["action"] = "store_true"
    elif int in (hint, *getattr(hint, "__args__", ())):
        keywords |= {"type": positive, "default": default}
    to.add_argument(option, dest=word, **{**keywords, **parameter.argument})


def ask(asked: Question, read: Reader, args: argparse.Namespace) -> int:
    """Run the command of a question."""
    words = vars(args)
    state, snapshot = read(args, asked.measured(words))
    answer = asked.ask(state, **asked.arguments(words, snapshot))
    shown = Shown(args.all, words)
    if args.json:
        show_answer(args, answer)
    else:
        show_text(asked.text(answer, shown), whole=args.all)
    return asked.status(answer, shown)


def show_text(text: Iterable[str | Table], *, whole: bool = True) -> None:
    """Print the lines and tables of an answer; unless it is wanted whole, no more than a person reads."""
    for part in text:
        if isinstance(part, Table):
            show(part.rows, part.headers, whole=whole or part.whole)
        elif isinstance(part, Folded):
            tables.show_lines([part])
        else:
            print(part)


def add_keys(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keys",
        type=Path,
        metavar="FILE",
        help="try the keys of this YAML file in place of all others",
    )


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


def add_state(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        type=Path,
        metavar="FILE",
        help="answer for this cluster state file instead of the engine",
    )


def add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cluster", metavar="CLUSTER", help="only this cluster, by name or id; else all")


def seconds(text: str) -> float:
    """A time to wait, as an option gives it."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f'"{text}": a number of seconds greater than 0')
    return number


def clusters_of(args: argparse.Namespace, snapshot: Snapshot) -> tuple[Cluster, ...]:
    """The cluster named, or all."""
    if args.cluster is None:
        return snapshot.clusters
    return (find(args.cluster, "cluster", snapshot.clusters),)


def read_state(
    args: argparse.Namespace,
    max_age: float | None = None,
    measured: Measured = Measured.FOR_RESERVATION,
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


def _read_state(args: argparse.Namespace, measured: Measured) -> tuple[object, Snapshot | None]:
    found = read_state(args, measured=measured)
    return found, found


def _read_domains(args: argparse.Namespace, measured: Measured) -> tuple[object, Snapshot | None]:
    from ovirt_placement.answers.ha_report import StateWithDomains

    found = read_state(args, measured=measured)
    return StateWithDomains(found, lambda: config.load(args.config).ha), found


def _read_configuration(args: argparse.Namespace, _: Measured) -> tuple[object, Snapshot | None]:
    return config.load(args.config), None


_READERS: Mapping[Reads, Reader] = {
    Reads.STATE: _read_state,
    Reads.DOMAINS: _read_domains,
    Reads.CONFIGURATION: _read_configuration,
}


def show(rows: Sequence[Sequence[object]], headers: Sequence[str], *, whole: bool = True) -> None:
    """Print a table; unless it is wanted whole, no more of it than a person reads."""
    if whole:
        tables.show(rows, headers)
        return
    tables.show([[_cut(str(cell)) for cell in row] for row in rows[:MOST_ROWS]], headers)
    if len(rows) > MOST_ROWS:
        print(f"... and {len(rows) - MOST_ROWS} more rows: --all shows them")


def show_answer(args: argparse.Namespace, document: Document) -> None:
    """Print the answer to a question as JSON, with its age if it is of old."""
    show_json(dated(document, args.known_age_seconds))


def show_json(answer: Any) -> None:
    """Print an answer as JSON; what the output's encoding lacks stands as escapes of JSON."""
    reported = msgspec.to_builtins(answer)
    ascii_only = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8"
    print(json.dumps(reported, indent=2, ensure_ascii=ascii_only))


def _cut(cell: str) -> str:
    lines = cell.split("\n")
    if len(lines) <= MOST_NAMES:
        return cell
    return "\n".join([*lines[: MOST_NAMES - 1], f"and {len(lines) - MOST_NAMES + 1} more"])
