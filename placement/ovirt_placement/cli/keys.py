"""`ovirt-placement keys`: sets placement keys, and shows what is wrong with them and how they place a VM."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ovirt_placement import config
from ovirt_placement.answers.keys import change, key_title
from ovirt_placement.answers.keys.change import (
    SETTERS,
    KeysChangeDocument,
    decided,
    key_change_lines,
    keys_change,
    read_with,
)
from ovirt_placement.answers.question import AuthoredState
from ovirt_placement.cli.changes import (
    add_writing,
    connected,
    fresh_state,
    login_name,
    opened,
    show_change,
    stops,
    stored,
)
from ovirt_placement.cli.questions import (
    PATIENCE_SECONDS,
    Reading,
    add_change,
    add_command,
    add_config,
    add_keyed_question,
    add_questions,
    read_state,
    show_file,
)
from ovirt_placement.engine.vms import ALL_DETAILS
from ovirt_placement.inventory.stored import with_keys
from ovirt_placement.model import PlacementKey, Snapshot, yaml_files
from ovirt_placement.model.names import LISTED_WITH_DEVICES, find_place, gone_keys
from ovirt_placement.model.record import NODE, SETTABLE, SYSTEM
from ovirt_placement.store.keys import KeyChange, KeyRecords, KeyStore, SetKey
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.forecast import Change


# -- Where commands about placement keys take them from: a state file, a file of keys, or engine and store.
def read_keys(args: argparse.Namespace) -> AuthoredState:
    """The state that is asked about; a live one with what the store holds at this moment."""
    snapshot = read_state(args)
    authors: tuple[SetKey, ...] = ()
    if args.state is None:
        nothing = KeyRecords(0), authors
        records, authors = stored(KeyStore, args, lambda store: (store.records(), store.all_keys()), nothing)
        snapshot = with_keys(snapshot, records)
    if args.keys is not None:
        if args.state is None:  # they may refer to what no key in the store refers to
            from ovirt_placement.engine.topology import detailed  # loads the SDK

            with connected(args) as connection:
                snapshot = detailed(connection, snapshot, ALL_DETAILS)
        keys = yaml_files.load_keys(args.keys, snapshot)
        return AuthoredState(replace(snapshot, placement_keys=keys), {})
    return AuthoredState(snapshot, {one.key.place: one for one in authors})


def read_engine(args: argparse.Namespace, levels: Iterable[str] = SETTABLE) -> Snapshot:
    return change.read_engine(config.load(args.config), levels)


# -- `ovirt-placement keys define`, `set`, `unset`, `import` and `prune`: change placement keys, all or none.
def define(args: argparse.Namespace) -> int:
    given = {"default": args.default, "sticky": args.sticky}
    return _change(
        args,
        read_engine(args, (NODE,)),
        lambda snapshot: change.to_define(snapshot, args.name, args.cluster, args.values, **given),
    )


def set_key(args: argparse.Namespace) -> int:
    words = args.name, args.value, args.weight, args.on, args.setter
    return _change(args, _read_named(args, *args.on), lambda snapshot: change.to_set(snapshot, *words))


def unset(args: argparse.Namespace) -> int:
    def decide(snapshot: Snapshot) -> KeyChange:
        if args.cluster is not None:
            places = change.hosts_of(snapshot, args.cluster)
        else:
            places = frozenset({find_place(args.on, snapshot.placement_keys, snapshot)})
        return change.to_unset(snapshot, args.name, places, args.setter)

    where = args.on if args.cluster is None else (NODE,)
    return _change(args, _read_named(args, *where), decide)


def _read_named(args: argparse.Namespace, level: str, *words: str) -> Snapshot:
    return change.read_named(config.load(args.config), PATIENCE_SECONDS, level, *words)


def import_keys(args: argparse.Namespace) -> int:
    own = SETTERS.get(args.setter)
    engine = read_engine(args)
    keyed = replace(engine, placement_keys=_records(args).placement_keys)
    put = yaml_files.load_keys(args.file, keyed, own or SYSTEM)
    for key in put:
        if own not in (None, key.key_class):
            raise UserError(
                f"{args.file}: {key_title(key, engine)}: with --as {args.setter} only keys of class {own}"
                " can be set"
            )
    places = {key.place for key in put}

    def decide(snapshot: Snapshot) -> KeyChange:
        others = (key for key in snapshot.placement_keys if key.place not in places)
        gone = tuple(key for key in others if args.replace and own in (None, key.key_class))
        return KeyChange(put=put, remove=gone)

    return _change(args, engine, decide)


def _change(args: argparse.Namespace, engine: Snapshot, decide: Callable[[Snapshot], KeyChange]) -> int:
    """Make the change that is decided on the engine's objects and the keys that are set, and report it.

    While it is decided no other client can write to the store: what may take time was read before. Raises
    `UserError` with all that speaks against the change; then nothing is changed.
    """
    standing: list[PlacementKey] = []

    def judged(placement: tuple[PlacementKey, ...]) -> KeyChange:
        standing[:] = placement
        change, against = decided(engine, placement, decide)
        if against:
            raise UserError(against)
        return change

    def intended() -> tuple[Snapshot, Change]:
        """By an engine read now with all that rules need, with the keys as they are to be."""
        from ovirt_placement.answers.plans.what_if import changed_keys  # planning takes long to load

        fresh = read_with(config.load(args.config), fresh_state(args))
        before = with_keys(fresh, _records(args))
        change, against = decided(engine, before.placement_keys, decide)
        return before, changed_keys(before, change, (against,) if against else ())

    if (status := stops(args, intended)) is not None:
        return status
    if args.dry_run:
        change = judged(_records(args).placement_keys)
    else:
        with opened(KeyStore, args) as store:
            change = store.change(judged, set_by=login_name(), title=partial(key_title, snapshot=engine))
    return _report(args, keys_change(engine, standing, change, dry_run=args.dry_run))


def _records(args: argparse.Namespace) -> KeyRecords:
    return stored(KeyStore, args, KeyStore.records, KeyRecords(0))


def prune(args: argparse.Namespace) -> int:
    """Remove what the store holds of objects that the engine has no more."""
    with opened(KeyStore, args) as store:
        # The store before the engine: what is set or recorded from now on is of objects that may be new.
        known = {one.key.place for one in store.all_keys()}
        remembered = store.remembered_vms()
        engine = read_engine(args)
        # An engine that shows no VM at all says nothing about them.
        missing = sorted(remembered - engine.vm_by_id.keys()) if engine.vms else []

        standing: list[PlacementKey] = []

        def decide(placement: Iterable[PlacementKey]) -> KeyChange:
            standing[:] = placement
            keys = (key for key in standing if key.place in known)
            return KeyChange(remove=gone_keys(keys, engine, LISTED_WITH_DEVICES))

        if args.dry_run:
            change = decide(one.key for one in store.all_keys())
        else:
            change = store.change(decide, set_by=login_name(), title=partial(key_title, snapshot=engine))
            store.forget_vms(missing)
    return _report(args, keys_change(engine, standing, change, missing, dry_run=args.dry_run))


#: How much of a change is printed for a person.
_MOST_LINES = 20


def _report(args: argparse.Namespace, answer: KeysChangeDocument) -> int:
    shown = list(key_change_lines(answer)) or ["Nothing to change."]
    if len(shown) > _MOST_LINES:
        more = f"... and {len(shown) - _MOST_LINES} more: ovirt-placement keys list --all shows all keys"
        shown = [*shown[:_MOST_LINES], more]
    show_change(args, answer, (*shown, *(f"note: {note}" for note in answer.notes)))
    return 0


def _export(args: argparse.Namespace) -> int:
    snapshot = read_keys(args).snapshot
    return show_file(args, yaml_files.described_keys(snapshot.placement_keys, snapshot))


# -- The commands.
DESCRIPTION = """\
Set placement keys, which draw VMs to some hosts and keep them off others, and look at what they do. See
docs/placement-keys.md.
"""
DEFINE = """\
Set or replace a key on every host of a cluster: a host key exists on all hosts of a cluster or on none.
"""
SET = """\
Set or replace a key on one object. On a host it has no weight, and must be defined for the cluster first.
"""
UNSET = "Remove a key from one object, or a host key from all hosts of a cluster.\n"
EXPORT = "Print all keys as YAML (with --json as JSON), as `keys import` reads it.\n"
IMPORT = "Set the keys of a YAML file: all or none. Other keys stay, unless --replace is given.\n"
PRUNE = """\
Remove the keys of clusters, hosts, VMs, data centers, networks, vNIC profiles, disks and NICs that the engine
no longer has, and the sticky copies of VMs that are gone (otherwise removed after a week).
"""

DEFINE_EXAMPLES = "  ovirt-placement keys define rack --cluster blue --values node1=1 node2=2 --default 0\n"
SET_EXAMPLES = """\
  ovirt-placement keys set rack 1 5 --on vm web1
  ovirt-placement keys set rack 2 --on host node1
"""
UNSET_EXAMPLES = """\
  ovirt-placement keys unset rack --on vm web1
  ovirt-placement keys unset rack --cluster blue
"""
EXPORT_EXAMPLES = "  ovirt-placement keys export > keys.yaml\n"
IMPORT_EXAMPLES = "  ovirt-placement keys import keys.yaml --replace\n"
PRUNE_EXAMPLES = "  ovirt-placement keys prune --dry-run\n"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = subparsers.add_parser("keys", help=summary, description=DESCRIPTION)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    reading = Reading(lambda args, _: read_keys(args), add_keyed_question)
    add_questions(actions, reading, "keys list", "keys check", "keys show", "keys explain")
    add = partial(add_command, actions)
    add_keyed_question(add("export", "print all keys as YAML", EXPORT, _export, EXPORT_EXAMPLES))

    defining = add("define", "give every host of a cluster a key", DEFINE, define, DEFINE_EXAMPLES)
    _add_name(defining)
    defining.add_argument("--cluster", metavar="CLUSTER", required=True, help="by name or id")
    defining.add_argument("--values", metavar="HOST=VALUE", nargs="+", default=[], help="the values of hosts")
    defining.add_argument("--default", metavar="VALUE", help="the value of all other hosts")
    sticky = "VMs that start on a host copy its value, with this weight"
    defining.add_argument("--sticky", metavar="WEIGHT", help=sticky)
    add_writing(defining)

    setting = add("set", "set a key", SET, set_key, SET_EXAMPLES)
    _add_name(setting)
    setting.add_argument("value", metavar="VALUE", help="a number")
    setting.add_argument("weight", metavar="WEIGHT", nargs="?", help="a number; not for host keys")
    _add_on(setting, required=True)
    _add_setter(setting, default="operator")
    add_writing(setting)

    unsetting = add("unset", "remove a key", UNSET, unset, UNSET_EXAMPLES)
    _add_name(unsetting)
    where = unsetting.add_mutually_exclusive_group(required=True)
    _add_on(where)
    where.add_argument("--cluster", metavar="CLUSTER", help="from all hosts of this cluster")
    _add_setter(unsetting, default="operator")
    add_writing(unsetting)

    importing = add("import", "set the keys of a YAML file", IMPORT, import_keys, IMPORT_EXAMPLES)
    importing.add_argument("file", metavar="FILE", type=Path)
    replacing = "remove all keys that the file lacks (with --as, only of that class)"
    importing.add_argument("--replace", action="store_true", help=replacing)
    _add_setter(importing, default=None)
    add_writing(importing)

    pruning = add(
        "prune", "remove keys of objects that are gone from the engine", PRUNE, prune, PRUNE_EXAMPLES
    )
    add_config(pruning)
    add_change(pruning)


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the key; one that begins with - goes last, after --")


def _add_on(parser: argparse._ActionsContainer, *, required: bool = False) -> None:
    what = f"a level ({', '.join(SETTABLE)}) and the name or id of an object"
    parser.add_argument("--on", nargs=2, metavar=("LEVEL", "RESOURCE"), required=required, help=what)


def _add_setter(parser: argparse.ArgumentParser, *, default: str | None) -> None:
    whose = f"whose key it is; else {default or 'the classes in the file say'}"
    parser.add_argument("--as", dest="setter", choices=SETTERS, default=default, help=whose)
