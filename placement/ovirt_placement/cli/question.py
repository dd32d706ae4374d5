"""What commands that answer questions share: where the state comes from, names for ids, the answer's form."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
from tabulate import tabulate

from ovirt_placement import config, inventory
from ovirt_placement.cli.arguments import add_config
from ovirt_placement.model import Cluster, Snapshot, state_file
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError


def add_question(parser: argparse.ArgumentParser) -> None:
    """Add `--state`, `--config` and `--json`."""
    parser.add_argument(
        "--state",
        type=Path,
        metavar="FILE",
        help="answer for this cluster state file instead of the engine",
    )
    add_config(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cluster", metavar="CLUSTER", help="only this cluster, by name or id; else all")


def clusters_of(args: argparse.Namespace, snapshot: Snapshot) -> tuple[Cluster, ...]:
    """The cluster named, or all."""
    if args.cluster is None:
        return snapshot.clusters
    return (find(args.cluster, "cluster", snapshot.clusters),)


def read_state(args: argparse.Namespace, max_age: float | None = None) -> Snapshot:
    """The state file named, else what the inventory publishes, else the engine itself.

    With `max_age`, no older than so many seconds; else as old as the configuration allows.
    """
    if args.state is not None:
        return state_file.load(args.state)
    return inventory.snapshot(config=config.load(args.config), max_age=max_age)


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


def show(rows: Sequence[Sequence[object]], headers: Sequence[str]) -> None:
    print(tabulate(rows, headers=headers, tablefmt="simple", disable_numparse=True))


def show_json(answer: Any) -> None:
    print(json.dumps(msgspec.to_builtins(answer), indent=2, ensure_ascii=False))
