"""What commands that answer questions share: their options, where the state comes from, how answers print."""

from __future__ import annotations

import argparse
import json
import logging
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ovirt_placement import config
from ovirt_placement.answers.document import MOST_NAMES, Document, dated, find, known_state
from ovirt_placement.cli.arguments import add_config, add_json
from ovirt_placement.inventory import Measured
from ovirt_placement.model import Cluster, Snapshot, state_file
from ovirt_service import tables

#: How long a command waits for the engine, in seconds, where nobody says: ten thousand VMs take a while.
PATIENCE_SECONDS = 120.0

#: Of a longer table, this many rows are shown without `--all`.
_MOST_ROWS = 20

_log = logging.getLogger(__name__)


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
    old as it may be where nothing newer is to be had. What nobody needs `measured` may be lacking.
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


def show(rows: Sequence[Sequence[object]], headers: Sequence[str], *, whole: bool = True) -> None:
    """Print a table; unless it is wanted whole, no more of it than a person reads."""
    if whole:
        tables.show(rows, headers)
        return
    tables.show([[_cut(str(cell)) for cell in row] for row in rows[:_MOST_ROWS]], headers)
    if len(rows) > _MOST_ROWS:
        print(f"... and {len(rows) - _MOST_ROWS} more rows: --all shows them")


def too_many(items: Sequence[object]) -> bool:
    """Whether it is more than a person reads."""
    return len(items) > _MOST_ROWS


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
