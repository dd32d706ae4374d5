"""Where commands about placement keys take them from: a state file, a file of keys, or engine and store."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ovirt_placement import config, inventory
from ovirt_placement.cli.question import PATIENCE_SECONDS, add_question, read_state
from ovirt_placement.cli.store import opened
from ovirt_placement.engine.reading.consistency import consistent
from ovirt_placement.engine.reading.detail import ALL_DETAILS, Detail
from ovirt_placement.inventory.client.keys import with_keys
from ovirt_placement.inventory.on_demand.details import referred
from ovirt_placement.model import Snapshot, key_file
from ovirt_placement.model.key_levels import CLUSTER, NODE, SETTABLE
from ovirt_placement.model.key_resources import find_resource
from ovirt_placement.store.database import StoreUnmade
from ovirt_placement.store.keys import KeyPlace, KeyRecords, KeyStore, SetKey
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection

#: What keys on these levels are set on hangs on no VM.
_WITHOUT_VMS = frozenset({CLUSTER, NODE, "vdc", "vdc_offer"})


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
        help="as if the keys of this YAML file were set, and no others: to try them",
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
                snapshot = _with_details(connection, snapshot, ALL_DETAILS)
        keys = key_file.load(args.keys, snapshot)
        return KeyState(replace(snapshot, placement_keys=keys), {})
    return KeyState(snapshot, {KeyPlace.of(one.key): one for one in authors})


def read_records(store: KeyStore) -> tuple[KeyRecords, tuple[SetKey, ...]]:
    """What a store knows; one that nobody has written to holds nothing."""
    try:
        return store.records(), store.all_keys()
    except StoreUnmade:
        return KeyRecords(0), ()


def read_named(args: argparse.Namespace, level: str, *words: str) -> Snapshot:
    """All that keys on this level can be set on.

    What the inventory publishes will do if it has the objects that are named, and all that hangs on them.
    """
    if level in SETTABLE and level not in _WITHOUT_VMS and not referred((level,)):
        known = inventory.known(
            config=config.load(args.config), deadline=PATIENCE_SECONDS, measured=inventory.Measured.NOTHING
        )
        with suppress(UserError):
            for word in words:
                find_resource(level, word, known.snapshot)
            return known.snapshot
    return read_engine(args, (level,))


def read_engine(args: argparse.Namespace, levels: Iterable[str] = SETTABLE) -> Snapshot:
    """All that keys on these levels can be set on, read from the engine at this moment."""
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.engine.reading.topology import read_infrastructure, read_snapshot

    levels = tuple(levels)
    details = referred(levels)
    with _connected(args) as connection:
        if _WITHOUT_VMS.issuperset(levels):
            return read_infrastructure(connection)
        snapshot = read_snapshot(connection)
        return _with_details(connection, snapshot, details) if details else snapshot


def _with_details(connection: EngineConnection, snapshot: Snapshot, details: Detail) -> Snapshot:
    from ovirt_placement.engine.reading.vm_details import detailed

    return consistent(detailed(connection, snapshot, details))


def _connected(args: argparse.Namespace) -> EngineConnection:
    from ovirt_placement.engine.connection.client import connect

    return connect(config.load(args.config).engine)


def opened_store(args: argparse.Namespace, *, create: bool = True) -> AbstractContextManager[KeyStore]:
    return opened(KeyStore, args, create=create)
