"""`ovirt-placement keys list`: the keys that are set, by whom and when."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from ovirt_placement.answers.documents.keys import KeysListDocument, set_key
from ovirt_placement.answers.key_sentences import key_place, written, written_weight
from ovirt_placement.cli.keys.state import read_keys
from ovirt_placement.cli.question import show, show_answer
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
    keys.sort(key=lambda one: (one[0].level, one[0].name, key_place(one[0], snapshot), one[0].key_class))
    if args.json:
        told = tuple(set_key(key, _authorship(author), snapshot) for key, author in keys)
        show_answer(args, KeysListDocument(keys=told))
    elif keys:
        rows = [(*_row(key, snapshot), *(_authorship(author) if authors else ())) for key, author in keys]
        headers = ("set by", "set at") if authors else ()
        show(rows, ("on", "class", "name", "value", "weight", "kind", *headers), whole=args.all)
    else:
        print("No keys.")
    return 0


def _row(key: PlacementKey, snapshot: Snapshot) -> tuple[str, ...]:
    place = key_place(key, snapshot)
    return place, key.key_class, key.name, written(key.value), written_weight(key), key_kind(key)


def _authorship(author: SetKey | None) -> tuple[str | None, str | None]:
    """Who set a key, and when, in UTC; nothing where that is not known."""
    if author is None:
        return None, None
    at = datetime.fromtimestamp(author.set_at, UTC)
    return author.set_by, at.isoformat(timespec="seconds")
