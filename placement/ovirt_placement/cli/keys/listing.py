"""`ovirt-placement keys list`: the keys that are set, by whom and when."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from ovirt_placement.answers.key_sentences import described, key_place, written, written_weight
from ovirt_placement.cli.keys.state import read_keys
from ovirt_placement.cli.question import show, show_json
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model.key_resources import find_place
from ovirt_placement.rules.placement_keys.keys import key_kind
from ovirt_placement.store.keys import KeyPlace, SetKey


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", metavar="NAME", help="only keys of this name")
    parser.add_argument(
        "--on",
        nargs="+",
        metavar=("LEVEL", "RESOURCE"),
        help="only keys of this level, and of this object if one is named",
    )


def run(args: argparse.Namespace) -> int:
    snapshot, authors = read_keys(args)
    known = [one.key for one in authors.values()] or snapshot.placement_keys
    wanted = None if args.on is None else find_place(args.on, known, snapshot)
    keys = [
        (key, authors.get(KeyPlace.of(key)))
        for key in known
        if args.name in (None, key.name)
        and (wanted is None or (key.level == wanted.level and wanted.resource in (None, key.resource)))
    ]
    if args.json:
        show_json(
            [
                {**described(key, snapshot), "kind": key_kind(key), **_authorship(author)}
                for key, author in keys
            ]
        )
    elif keys:
        rows = [(*_row(key, snapshot), *_authorship(author).values()) for key, author in keys]
        told = ("set by", "set at") if authors else ()
        show(rows, ("on", "class", "name", "value", "weight", "kind", *told))
    else:
        print("No keys.")
    return 0


def _row(key: PlacementKey, snapshot: Snapshot) -> tuple[str, ...]:
    place = key_place(key, snapshot)
    return place, key.key_class, key.name, written(key.value), written_weight(key), key_kind(key)


def _authorship(author: SetKey | None) -> dict[str, str]:
    """Who set a key, and when, in UTC; nothing where that is not known."""
    if author is None:
        return {}
    at = datetime.fromtimestamp(author.set_at, UTC)
    return {"set_by": author.set_by, "set_at": at.isoformat(timespec="seconds")}
