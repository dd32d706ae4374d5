"""`ovirt-placement keys define`, `set`, `unset` and `import`: change placement keys, all or none."""

from __future__ import annotations

import argparse
import os
import pwd
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from ovirt_placement import config, key_file
from ovirt_placement.commands.keys_state import opened_store
from ovirt_placement.commands.question import find, show_json
from ovirt_placement.decoding import nearest
from ovirt_placement.errors import UserError
from ovirt_placement.explain_keys import key_place, mistake_place, mistake_sentence, written
from ovirt_placement.key_levels import BILLING_ENTITY, CUSTOMER, NODE, SYSTEM
from ovirt_placement.key_resources import find_resource
from ovirt_placement.model import Cluster, Host, PlacementKey, Snapshot
from ovirt_placement.rules.placement_keys.changes import Refusal, refusals
from ovirt_placement.rules.placement_keys.exact import number
from ovirt_placement.rules.placement_keys.keys import Code
from ovirt_placement.store_keys import KeyChange, KeyPlace

#: Who sets keys, and the class of theirs.
SETTERS = {"operator": SYSTEM, "billing-entity": BILLING_ENTITY, "customer": CUSTOMER}


def define(args: argparse.Namespace) -> int:
    """Run `keys define`."""

    def decide(snapshot: Snapshot) -> KeyChange:
        cluster = find(args.cluster, "cluster", snapshot.clusters)
        hosts = snapshot.hosts_of_cluster.get(cluster.id, ())
        put = (
            PlacementKey(
                level=NODE,
                resource=host,
                key_class=SYSTEM,
                name=args.name,
                value=value,
                weight=args.sticky,
                sticky=args.sticky is not None,
            )
            for host, value in _values(args, cluster, hosts).items()
        )
        return KeyChange(put=tuple(put))

    return _change(args, decide)


def set_key(args: argparse.Namespace) -> int:
    """Run `keys set`."""

    def decide(snapshot: Snapshot) -> KeyChange:
        level, word = args.on
        key = PlacementKey(
            level=level,
            resource=find_resource(level, word, snapshot),
            key_class=SETTERS[args.setter],
            name=args.name,
            value=_value(args.value),
            weight=args.weight,
        )
        return KeyChange(put=(_as_on_other_hosts(key, snapshot) if level == NODE else key,))

    return _change(args, decide)


def unset(args: argparse.Namespace) -> int:
    """Run `keys unset`."""

    def decide(snapshot: Snapshot) -> KeyChange:
        there = tuple(_on(args, snapshot))
        gone = tuple(key for key in there if key.name == args.name)
        if not gone:
            hint = nearest(args.name, [key.name for key in there])
            raise UserError(f'no {SETTERS[args.setter]} key "{args.name}" is set there{hint}')
        return KeyChange(remove=gone)

    return _change(args, decide)


def import_keys(args: argparse.Namespace) -> int:
    """Run `keys import`."""
    own = SETTERS.get(args.setter)

    def decide(snapshot: Snapshot) -> KeyChange:
        put = key_file.load(args.file, snapshot, own or SYSTEM)
        for key in put:
            if own not in (None, key.key_class):
                raise UserError(
                    f"{args.file}: {_named(key, snapshot)}: with --as {args.setter} only keys of class"
                    f" {own} can be set"
                )
        places = {KeyPlace.of(key) for key in put}
        standing = snapshot.placement_keys if args.replace else ()
        gone = (key for key in standing if KeyPlace.of(key) not in places and own in (None, key.key_class))
        return KeyChange(put=put, remove=tuple(gone))

    return _change(args, decide)


def setter_name() -> str:
    """The login of whoever runs this; with sudo, of whoever called it."""
    user = os.environ.get("SUDO_USER") if os.geteuid() == 0 else None
    try:
        return user or pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def described(key: PlacementKey, snapshot: Snapshot) -> dict[str, object]:
    """A key as JSON, with the name of what it is set on."""
    return {
        "level": key.level,
        "resource": key.resource,
        "place": key_place(key, snapshot),
        "class": key.key_class,
        "name": key.name,
        "value": key.value,
        "weight": key.weight,
        "sticky": key.sticky,
    }


def _change(args: argparse.Namespace, decide: Callable[[Snapshot], KeyChange]) -> int:
    """Make the change that is decided on the engine's objects and the keys that are set, and tell of it.

    Raises `UserError` with all that speaks against it; then nothing is changed.
    """
    engine = _read_engine(args)

    def judged(standing: tuple[PlacementKey, ...]) -> KeyChange:
        snapshot = replace(engine, placement_keys=standing)
        change = decide(snapshot)
        if found := refusals(snapshot, change.put, change.remove):
            raise UserError("; ".join(_refusal(one, snapshot) for one in found))
        return change

    with opened_store(args) as store:
        change = store.change_as(judged, set_by=setter_name())
    _report(args, engine, change)
    return 0


def _read_engine(args: argparse.Namespace) -> Snapshot:
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.engine.connection import connect
    from ovirt_placement.engine.reader import read_snapshot

    with connect(config.load(args.config).engine) as connection:
        return read_snapshot(connection, devices=True)


def _refusal(found: Refusal, snapshot: Snapshot) -> str:
    return f"{mistake_place(found, snapshot)}: {', '.join(found.codes)}: {mistake_sentence(found)}"


def _values(args: argparse.Namespace, cluster: Cluster, hosts: tuple[Host, ...]) -> dict[str, float | str]:
    """What each host of the cluster is given. Raises `UserError` if one is given nothing."""
    values: dict[str, float | str] = {}
    for text in args.values:
        word, equals, value = text.rpartition("=")
        if not equals:
            raise UserError(f'"{text}": write it as HOST=VALUE')
        values[find(word, f"host of cluster {cluster.name}", hosts).id] = _value(value)
    lacking = [host.name for host in hosts if host.id not in values]
    if lacking and args.default is None:
        raise UserError(
            f"cluster {cluster.name}: {Code.NODE_KEY_SET_DIFFERS}: {args.name} needs a value on every host:"
            f" give {', '.join(lacking)} one, or all that are not named by --default"
        )
    return {host.id: values.get(host.id, _value(args.default or "")) for host in hosts}


def _as_on_other_hosts(key: PlacementKey, snapshot: Snapshot) -> PlacementKey:
    """With the weight and the sticky flag that it has there, or else on another host of the cluster."""
    cluster = snapshot.host_by_id[key.resource].cluster
    alike = [
        other
        for other in snapshot.placement_keys
        if other.level == NODE
        and other.name == key.name
        and other.resource in snapshot.host_by_id
        and snapshot.host_by_id[other.resource].cluster == cluster
    ]
    alike.sort(key=lambda other: other.resource != key.resource)
    for other in alike[:1]:
        weight = other.weight if key.weight is None else key.weight
        return replace(key, weight=weight, sticky=other.sticky)
    return key


def _on(args: argparse.Namespace, snapshot: Snapshot) -> Iterator[PlacementKey]:
    """The keys of the setter that stand where `--on` or `--cluster` says."""
    if args.cluster is not None:
        cluster = find(args.cluster, "cluster", snapshot.clusters)
        places = {(NODE, host.id) for host in snapshot.hosts_of_cluster.get(cluster.id, ())}
    else:
        level, word = args.on
        # What it was set on may be gone from the engine.
        known = any((key.level, key.resource) == (level, word) for key in snapshot.placement_keys)
        places = {(level, word if known else find_resource(level, word, snapshot))}
    own = SETTERS[args.setter]
    for key in snapshot.placement_keys:
        if (key.level, key.resource) in places and key.key_class == own:
            yield key


def _value(text: str) -> float | str:
    """A number if it is one; else the word, which is refused with its code."""
    exact = number(text)
    return text if exact is None else float(exact)


def _report(args: argparse.Namespace, snapshot: Snapshot, change: KeyChange) -> None:
    if args.json:
        show_json(
            {
                "set": [described(key, snapshot) for key in change.put],
                "unset": [described(key, snapshot) for key in change.remove],
            }
        )
        return
    for key in change.put:
        weight = "" if key.weight is None else f" ({key.weight:g})"
        sticky = ", sticky" if key.sticky else ""
        print(f"set {_named(key, snapshot)}: {written(key.value)}{weight}{sticky}")
    for key in change.remove:
        print(f"unset {_named(key, snapshot)}")


def _named(key: PlacementKey, snapshot: Snapshot) -> str:
    return f"{key_place(key, snapshot)}: {key.key_class} key {key.name}"
