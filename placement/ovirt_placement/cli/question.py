"""What commands that answer questions share: where the state comes from, names for ids, the answer's form."""

from __future__ import annotations

import argparse
import json
import logging
import math
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from ovirt_placement import config, inventory
from ovirt_placement.answers.document import Document
from ovirt_placement.cli.arguments import add_config
from ovirt_placement.inventory import Measured
from ovirt_placement.model import Cluster, Snapshot, state_file
from ovirt_service import tables
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

#: How long a command waits for the engine, in seconds, where nobody says: ten thousand VMs take a while.
PATIENCE_SECONDS = 120.0

#: Long enough to see whether there is an inventory.
_A_MOMENT = 0.2

#: Of a longer table, and of a longer list in one of its cells, so much is shown without `--all`.
_MOST_ROWS = 20
_MOST_LINES = 8

_log = logging.getLogger(__name__)


def add_question(parser: argparse.ArgumentParser) -> None:
    """Add `--state`, `--config`, `--json`, `--stale`, `--timeout` and `--all`."""
    parser.add_argument(
        "--state",
        type=Path,
        metavar="FILE",
        help="answer for this cluster state file instead of the engine",
    )
    add_config(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table (docs/json.md)")
    parser.add_argument(
        "--stale",
        action="store_true",
        help="answer by what the inventory knew last, however old, when the engine is away; its age is shown",
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
    known = known_state(args, config.load(args.config), max_age, measured)
    return known.snapshot


def known_state(
    args: argparse.Namespace,
    configuration: config.Config,
    max_age: float | None = None,
    measured: Measured = Measured.FOR_RESERVATION,
) -> inventory.Known:
    """What is known of the engine; with `--stale` perhaps of old, and then it is said."""
    try:
        return inventory.known(
            config=configuration, max_age=max_age, deadline=args.timeout, measured=measured
        )
    except inventory.NoSnapshot as error:
        if not args.stale:
            raise
        found = last_known(configuration, error)
        if found.publication is not None:
            args.known_age_seconds = found.publication.age_seconds
            _log.warning("this is %.0f s old: %s", args.known_age_seconds, error)
        return found


def last_known(configuration: config.Config, error: inventory.NoSnapshot) -> inventory.Known:
    """What the inventory published last; raises the error if there is nothing."""
    try:
        found = inventory.known(config=configuration, max_age=math.inf, deadline=_A_MOMENT)
    except inventory.NoSnapshot:
        raise error from None
    return found


class _Named(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...


Item = TypeVar("Item", bound=_Named)


def find(word: str, wanted: str, items: Iterable[Item]) -> Item:
    """The VM, host, cluster or group that a word means: its id, or its name if no other has it too.

    Raises `UserError` with the nearest right name, or with the ids to choose from.
    """
    known = tuple(items)
    by_id = {item.id: item for item in known}
    if word in by_id:
        return by_id[word]
    found = [item for item in known if item.name == word]
    if len(found) > 1:
        raise UserError(f'{wanted} "{word}" is ambiguous: say {" or ".join(item.id for item in found)}')
    if not found:
        raise UserError(f'no {wanted} "{word}"{nearest(word, [item.name for item in known])}')
    return found[0]


def show(rows: Sequence[Sequence[object]], headers: Sequence[str], *, whole: bool = True) -> None:
    """Print a table; unless it is wanted whole, no more of it than a person reads."""
    if whole:
        tables.show(rows, headers)
        return
    tables.show([[_cut(str(cell)) for cell in row] for row in rows[:_MOST_ROWS]], headers)
    if len(rows) > _MOST_ROWS:
        print(f"... and {len(rows) - _MOST_ROWS} more rows: --all shows them")


def listed(names: Sequence[str], joint: str = ", ", *, whole: bool = False) -> str:
    """Names on a line; unless all are wanted, no more than a person reads."""
    if whole or len(names) <= _MOST_LINES:
        return joint.join(names)
    return f"{joint.join(names[:_MOST_LINES])} and {len(names) - _MOST_LINES} more"


def too_many(items: Sequence[object]) -> bool:
    """Whether it is more than a person reads."""
    return len(items) > _MOST_ROWS


def show_answer(args: argparse.Namespace, document: Document) -> None:
    """Print the answer to a question as JSON, with its age if it is of old."""
    age = args.known_age_seconds
    if age is not None:
        as_of = datetime.now(UTC) - timedelta(seconds=age)
        document = msgspec.structs.replace(
            document, as_of=as_of.isoformat(timespec="seconds"), age_seconds=round(age, 1)
        )
    show_json(document)


def show_json(answer: Any) -> None:
    """Print an answer as JSON; what the output's encoding lacks stands as escapes of JSON."""
    told = msgspec.to_builtins(answer)
    ascii_only = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8"
    print(json.dumps(told, indent=2, ensure_ascii=ascii_only))


def _cut(cell: str) -> str:
    lines = cell.split("\n")
    if len(lines) <= _MOST_LINES:
        return cell
    return "\n".join([*lines[: _MOST_LINES - 1], f"and {len(lines) - _MOST_LINES + 1} more"])
