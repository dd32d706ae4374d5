"""`ovirt-placement keys define`, `set`, `unset` and `import`: change placement keys, all or none."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from ovirt_placement.answers.finding import find
from ovirt_placement.answers.keys.change import keys_change
from ovirt_placement.answers.keys.sentences import key_title, mistake_place, mistake_sentence
from ovirt_placement.cli.foresight import stops
from ovirt_placement.cli.keys.foreseen import foreseen
from ovirt_placement.cli.keys.report import report
from ovirt_placement.cli.keys.state import opened_store, read_engine, read_named, read_records
from ovirt_placement.cli.login import login_name
from ovirt_placement.model import Cluster, Host, PlacementKey, Snapshot, key_file
from ovirt_placement.model.key_levels import BILLING_ENTITY, CUSTOMER, NODE, SYSTEM, level_of
from ovirt_placement.model.key_resources import Place, find_place, find_resource
from ovirt_placement.rules.placement_keys.exact import number
from ovirt_placement.rules.placement_keys.keys import RATIO_NAMES, Code
from ovirt_placement.rules.placement_keys.mistakes import MissingNodeKeys, Refusal, refusals
from ovirt_placement.store.keys import KeyChange, KeyPlace
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

#: Who sets keys, and the class of theirs.
SETTERS = {"operator": SYSTEM, "billing-entity": BILLING_ENTITY, "customer": CUSTOMER}

#: How much of what speaks against a change is reported.
_REPORTED = 5


def define(args: argparse.Namespace) -> int:
    """Run `keys define`."""

    def decide(snapshot: Snapshot) -> KeyChange:
        cluster = find(args.cluster, "cluster", snapshot.clusters)
        hosts = snapshot.hosts_of_cluster.get(cluster.id, ())
        if not hosts:
            raise UserError(f"cluster {cluster.name} has no hosts to give a key")
        weight = None if args.sticky is None else _weight(args.sticky)
        put = (
            PlacementKey(
                level=NODE,
                resource=host,
                key_class=SYSTEM,
                name=args.name,
                value=value,
                weight=weight,
                sticky=weight is not None,
            )
            for host, value in _values(args, cluster, hosts).items()
        )
        return KeyChange(put=tuple(put))

    return _change(args, read_engine(args, (NODE,)), decide)


def set_key(args: argparse.Namespace) -> int:
    """Run `keys set`."""

    def decide(snapshot: Snapshot) -> KeyChange:
        level, word = level_of(args.on[0]), args.on[1]
        key = PlacementKey(
            level=level,
            resource=find_resource(level, word, snapshot),
            key_class=SETTERS[args.setter],
            name=args.name,
            value=_value(args.value),
            weight=None if args.weight is None else _weight(args.weight),
        )
        return KeyChange(put=(_as_on_other_hosts(key, snapshot) if level == NODE else key,))

    return _change(args, read_named(args, *args.on), decide)


def unset(args: argparse.Namespace) -> int:
    """Run `keys unset`."""

    def decide(snapshot: Snapshot) -> KeyChange:
        there = tuple(_on(args, snapshot))
        named = tuple(key for key in there if key.name == args.name)
        own = SETTERS[args.setter]
        gone = tuple(key for key in named if key.key_class == own)
        if not gone:
            setters = [setter for setter, of in SETTERS.items() if any(key.key_class == of for key in named)]
            others = f"; there is one --as {' and one --as '.join(setters)}" if setters else ""
            hint = others or nearest(args.name, [key.name for key in there])
            raise UserError(f'no {own} key "{args.name}" is set there{hint}')
        return KeyChange(remove=gone)

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
        if found := refusals(snapshot, change.put, change.remove):
            raise UserError(_refused(found, snapshot))
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
    found = refusals(snapshot, change.put, change.remove)
    return change, (_refused(found, snapshot),) if found else ()


def _refused(found: Sequence[Refusal], snapshot: Snapshot) -> str:
    """Why a change is not made, in one line."""
    reasons = [
        f"{mistake_place(one, snapshot)}: {', '.join(one.codes)}: {mistake_sentence(one)}"
        for one in found[:_REPORTED]
    ]
    if len(found) > _REPORTED:
        reasons.append(f"and {len(found) - _REPORTED} more like these")
    if any(isinstance(one, MissingNodeKeys) for one in found):
        reasons.append("keys define, and keys unset --cluster, change a key on all hosts at once")
    return "; ".join(reasons)


def _values(args: argparse.Namespace, cluster: Cluster, hosts: tuple[Host, ...]) -> dict[str, float | str]:
    """What each host of the cluster is given. Raises `UserError` if one that needs a value is given none."""
    values: dict[str, float | str] = {}
    for text in args.values:
        word, equals, value = text.rpartition("=")
        if not equals:
            raise UserError(f'"{text}": write it as HOST=VALUE')
        host = find(word, f"host of cluster {cluster.name}", hosts)
        if host.id in values:
            raise UserError(f"{host.name} is given two values")
        values[host.id] = _value(value)
    lacking = [host.name for host in hosts if host.id not in values]
    if lacking and args.default is None:
        if args.name in RATIO_NAMES:
            return values
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
    sticky = bool(alike) and alike[0].sticky
    if key.weight is not None and not sticky:
        raise UserError(f"{key_title(key, snapshot)}: keys of hosts have no weight, unless they are sticky")
    weight = alike[0].weight if sticky and key.weight is None else key.weight
    return replace(key, weight=weight, sticky=sticky)


def _on(args: argparse.Namespace, snapshot: Snapshot) -> Iterator[PlacementKey]:
    """The keys that stand where `--on` or `--cluster` says."""
    if args.cluster is not None:
        cluster = find(args.cluster, "cluster", snapshot.clusters)
        places = {Place(NODE, host.id) for host in snapshot.hosts_of_cluster.get(cluster.id, ())}
    else:
        places = {find_place(args.on, snapshot.placement_keys, snapshot)}
    return (key for key in snapshot.placement_keys if Place(key.level, key.resource) in places)


def _value(text: str) -> float | str:
    """A number if it is one; else the word, which is refused with its code."""
    exact = number(text)
    return text if exact is None else float(exact)


def _weight(text: str) -> float:
    exact = number(text)
    if exact is None:
        raise UserError(f'the weight "{text}" is no number')
    return float(exact)
