"""Where commands about placement keys take them from: a state file, a file of keys, or engine and store."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ovirt_placement import config
from ovirt_placement.answers.keys import change
from ovirt_placement.answers.keys.change import read_records, with_details
from ovirt_placement.cli.question import PATIENCE_SECONDS, add_question, read_state
from ovirt_placement.cli.store import opened
from ovirt_placement.engine.reading.owners import ALL_DETAILS
from ovirt_placement.inventory.stored import with_keys
from ovirt_placement.model import Snapshot, key_file
from ovirt_placement.model.placement_keys import SETTABLE
from ovirt_placement.store.keys import KeyPlace, KeyStore, SetKey

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection


class KeyState(NamedTuple):
    snapshot: Snapshot
    #: Who set each key, and when, where the store knows: also keys of objects that the engine has no more.
    authors: Mapping[KeyPlace, SetKey]


def add_key_state(parser: argparse.ArgumentParser) -> None:
    """Add what every question about a state has, and `--keys`."""
    add_question(parser)
    parser.add_argument(
        "--keys",
        type=Path,
        metavar="FILE",
        help="try the keys of this YAML file in place of all others",
    )


def read_keys(args: argparse.Namespace) -> KeyState:
    """The state that is asked about; a live one with what the store holds at this moment."""
    snapshot = read_state(args)
    authors: tuple[SetKey, ...] = ()
    if args.state is None:
        with opened_store(args, create=False) as store:
            records, authors = read_records(store)
        snapshot = with_keys(snapshot, records)
    if args.keys is not None:
        if args.state is None:  # they may refer to what no key in the store refers to
            with _connected(args) as connection:
                snapshot = with_details(connection, snapshot, ALL_DETAILS)
        keys = key_file.load(args.keys, snapshot)
        return KeyState(replace(snapshot, placement_keys=keys), {})
    return KeyState(snapshot, {KeyPlace.of(one.key): one for one in authors})


def read_named(args: argparse.Namespace, level: str, *words: str) -> Snapshot:
    return change.read_named(config.load(args.config), PATIENCE_SECONDS, level, *words)


def read_engine(args: argparse.Namespace, levels: Iterable[str] = SETTABLE) -> Snapshot:
    return change.read_engine(config.load(args.config), levels)


def _connected(args: argparse.Namespace) -> EngineConnection:
    from ovirt_placement.engine.connection.client import connect

    return connect(config.load(args.config).engine)


def opened_store(args: argparse.Namespace, *, create: bool = True) -> AbstractContextManager[KeyStore]:
    return opened(KeyStore, args, create=create)
