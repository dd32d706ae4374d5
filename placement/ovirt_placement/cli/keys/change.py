"""`ovirt-placement keys define`, `set`, `unset` and `import`: change placement keys, all or none."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from ovirt_placement.answers.keys.change import (
    SETTERS,
    hosts_of,
    keys_change,
    objections,
    read_records,
    to_define,
    to_set,
    to_unset,
)
from ovirt_placement.answers.keys.key import key_title
from ovirt_placement.cli.foresight import stops
from ovirt_placement.cli.keys.foreseen import foreseen
from ovirt_placement.cli.keys.report import report
from ovirt_placement.cli.keys.state import opened_store, read_engine, read_named
from ovirt_placement.cli.login import login_name
from ovirt_placement.model import PlacementKey, Snapshot, key_file
from ovirt_placement.model.key_resources import find_place
from ovirt_placement.model.placement_keys import NODE, SYSTEM
from ovirt_placement.store.keys import KeyChange, KeyPlace
from ovirt_service.errors import UserError


def define(args: argparse.Namespace) -> int:
    """Run `keys define`."""

    def decide(snapshot: Snapshot) -> KeyChange:
        return to_define(
            snapshot, args.name, args.cluster, args.values, default=args.default, sticky=args.sticky
        )

    return _change(args, read_engine(args, (NODE,)), decide)


def set_key(args: argparse.Namespace) -> int:
    """Run `keys set`."""

    def decide(snapshot: Snapshot) -> KeyChange:
        return to_set(snapshot, args.name, args.value, args.weight, args.on, args.setter)

    return _change(args, read_named(args, *args.on), decide)


def unset(args: argparse.Namespace) -> int:
    """Run `keys unset`."""

    def decide(snapshot: Snapshot) -> KeyChange:
        if args.cluster is not None:
            places = hosts_of(snapshot, args.cluster)
        else:
            places = frozenset({find_place(args.on, snapshot.placement_keys, snapshot)})
        return to_unset(snapshot, args.name, places, args.setter)

    where = args.on if args.cluster is None else (NODE,)
    return _change(args, read_named(args, *where), decide)


def import_keys(args: argparse.Namespace) -> int:
    """Run `keys import`."""
    own = SETTERS.get(args.setter)
    engine = read_engine(args)
    put = key_file.load(args.file, engine, own or SYSTEM)
    for key in put:
        if own not in (None, key.key_class):
            raise UserError(
                f"{args.file}: {key_title(key, engine)}: with --as {args.setter} only keys of class {own}"
                " can be set"
            )
    places = {KeyPlace.of(key) for key in put}

    def decide(snapshot: Snapshot) -> KeyChange:
        placement = snapshot.placement_keys if args.replace else ()
        gone = (key for key in placement if KeyPlace.of(key) not in places and own in (None, key.key_class))
        return KeyChange(put=put, remove=tuple(gone))

    return _change(args, engine, decide)


def _change(args: argparse.Namespace, engine: Snapshot, decide: Callable[[Snapshot], KeyChange]) -> int:
    """Make the change that is decided on the engine's objects and the keys that are set, and report it.

    While it is decided nobody else can write to the store: what may take time was read before. Raises
    `UserError` with all that speaks against the change; then nothing is changed.
    """
    standing: list[PlacementKey] = []

    def judged(placement: tuple[PlacementKey, ...]) -> KeyChange:
        standing[:] = placement
        snapshot = replace(engine, placement_keys=placement)
        change = decide(snapshot)
        if against := objections(snapshot, change):
            raise UserError(against)
        return change

    if (
        status := stops(args, lambda: foreseen(args, lambda before: _undone(before, engine, decide)))
    ) is not None:
        return status
    if args.dry_run:
        with opened_store(args, create=False) as store:
            change = judged(read_records(store)[0].keys)
    else:
        with opened_store(args) as store:
            change = store.change(judged, set_by=login_name(), title=partial(key_title, snapshot=engine))
    report(args, keys_change(engine, standing, change, dry_run=args.dry_run))
    return 0


def _undone(
    before: Snapshot, engine: Snapshot, decide: Callable[[Snapshot], KeyChange]
) -> tuple[KeyChange, tuple[str, ...]]:
    """The change that would be made, and all that speaks against it."""
    snapshot = replace(engine, placement_keys=before.placement_keys)
    change = decide(snapshot)
    against = objections(snapshot, change)
    return change, (against,) if against else ()
