"""The placement keys that are set; changes: what is meant, what speaks against it, what was changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated

from msgspec.structs import replace

from ovirt_placement.answers.document import DRY_RUN, ChangeDocument, Columns, Document, Table, find, table
from ovirt_placement.answers.keys import KeyRecord, key_title, where_mistaken, without_effect
from ovirt_placement.answers.question import AuthoredState, Parameter, Reads, Route, question
from ovirt_placement.config import Config
from ovirt_placement.engine.vms import ALL_DETAILS
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.on_demand import referred
from ovirt_placement.inventory.publication import Measured
from ovirt_placement.model import Cluster, Host, PlacementKey, Snapshot
from ovirt_placement.model.names import Place, clusters_of, find_place, find_resource
from ovirt_placement.model.record import (
    BILLING_ENTITY,
    CLUSTER,
    CUSTOMER,
    NODE,
    SETTABLE,
    SYSTEM,
    level_of,
    with_names,
    written,
)
from ovirt_placement.rules.placement_keys.hierarchy import MissingNodeKeys, refusals
from ovirt_placement.rules.placement_keys.keys import RATIO_NAMES, Code, number
from ovirt_placement.store.keys import KeyChange
from ovirt_placement.store.keys import SetKey as StoredKey
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

# -- What placement keys can be set on, fresh enough for a person who sets some.
#: What keys on these levels are set on hangs on no VM.
_WITHOUT_VMS = frozenset({CLUSTER, NODE, "vdc", "vdc_offer"})


def read_named(config: Config, patience_seconds: float, level: str, *words: str) -> Snapshot:
    """All that keys on this level can be set on; what is published will do if it has what is named."""
    if level in SETTABLE and level not in _WITHOUT_VMS and not referred((level,)):
        known = inventory.known(config=config, deadline=patience_seconds, measured=Measured.NOTHING)
        with suppress(UserError):
            for word in words:
                find_resource(level, word, known.snapshot)
            return known.snapshot
    return read_engine(config, (level,))


def read_engine(config: Config, levels: Iterable[str] = SETTABLE) -> Snapshot:
    """All that keys on these levels can be set on, read from the engine at this moment."""
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.engine.connection.client import EngineConnection
    from ovirt_placement.engine.topology import detailed, read_snapshot

    levels = tuple(levels)
    details = referred(levels)
    with EngineConnection(config.engine) as connection:
        if _WITHOUT_VMS.issuperset(levels):
            return read_snapshot(connection, vms=False)
        snapshot = read_snapshot(connection)
        return detailed(connection, snapshot, details) if details else snapshot


def read_with(config: Config, snapshot: Snapshot, levels: Iterable[str] = SETTABLE) -> Snapshot:
    """A state with all that keys on these levels refer to, read now; what was measured stays."""
    if not referred(levels):
        return snapshot
    from ovirt_placement.engine.connection.client import EngineConnection
    from ovirt_placement.engine.topology import detailed

    with EngineConnection(config.engine) as connection:
        return detailed(connection, snapshot, ALL_DETAILS)


# -- The placement keys that are set, by whom and when.
class SetKey(KeyRecord, frozen=True, omit_defaults=False, kw_only=True):
    """A key, who set it and when (ISO 8601, in UTC); null where that is not known."""

    set_by: str | None
    set_at: str | None


class KeysListDocument(Document, frozen=True, kw_only=True, tag="keys_list"):
    """The keys that are set."""

    keys: tuple[SetKey, ...]


@question(
    "keys list",
    "the keys that are set",
    """\
List placement keys: the class (system: the operator's; be: a billing entity's; customer), what each is set
on, who set it and when.
""",
    examples="  ovirt-placement keys list --on cluster blue\n",
    text=lambda answer, shown: [
        keys_table(answer) if answer.keys else "No such keys." if shown.asks_for("name", "on") else "No keys."
    ],
    reads=Reads.KEYS,
    routes=(Route("/keys", "the placement keys that are set"),),
)
def keys_list(
    state: AuthoredState,
    *,
    name: Annotated[str | None, Parameter("only keys of this name", "NAME")] = None,
    on: Annotated[
        Sequence[str] | None,
        Parameter(
            "only keys of this level, or of this object", ("LEVEL", "RESOURCE"), argument={"nargs": "+"}
        ),
    ] = None,
) -> KeysListDocument:
    """The keys of a store, or without any those of the state. Raises `UserError` for unknown places."""
    snapshot, authors = state
    known = [one.key for one in authors.values()] or snapshot.placement_keys
    wanted = None if on is None else find_place(on, known, snapshot)
    keys = [
        _set_key(key, authors.get(key.place), snapshot)
        for key in known
        if name in (None, key.name)
        and (wanted is None or (key.level == wanted.level and wanted.resource in (None, key.resource)))
    ]
    keys.sort(key=lambda one: (one.level, one.name, one.place, one.key_class))
    return KeysListDocument(keys=tuple(keys))


def _set_key(key: PlacementKey, author: StoredKey | None, snapshot: Snapshot) -> SetKey:
    at = None if author is None else datetime.fromtimestamp(author.set_at, UTC).isoformat(timespec="seconds")
    by = author and author.set_by
    return with_names(SetKey, key, snapshot, set_by=by, set_at=at)


# -- in words
_COLUMNS: Columns = {
    "on": lambda one: one.place,
    "class": lambda one: one.key_class,
    "name": lambda one: one.name,
    "value": lambda one: written(one.value),
    "weight": lambda one: written(one.weight),
    "kind": lambda one: one.kind,
}
_AUTHORS: Columns = {"set by": lambda one: one.set_by, "set at": lambda one: one.set_at}


def keys_table(answer: KeysListDocument) -> Table:
    """Who set the keys stands there where it is known."""
    authored = any(one.set_at is not None for one in answer.keys)
    return table(answer.keys, {**_COLUMNS, **(_AUTHORS if authored else {})})


# -- What a person means by setting and removing placement keys: for commands, and for the page.
#: Who sets keys, and the class of theirs.
SETTERS = {"operator": SYSTEM, "billing-entity": BILLING_ENTITY, "customer": CUSTOMER}

#: How much of what speaks against a change is reported.
_REPORTED = 5


def to_set(
    snapshot: Snapshot, name: str, value: str, weight: str | None, on: Sequence[str], setter: str
) -> KeyChange:
    """A key on one object, which `on` names by its level and a word for it. Raises `UserError`."""
    level, word = level_of(on[0]), on[1]
    key = PlacementKey(
        level=level,
        resource=find_resource(level, word, snapshot),
        key_class=SETTERS[setter],
        name=name,
        value=_value(value),
        weight=None if weight is None else _weight(weight),
    )
    return KeyChange(put=(_as_on_other_hosts(key, snapshot) if level == NODE else key,))


def to_unset(snapshot: Snapshot, name: str, places: Collection[Place], setter: str) -> KeyChange:
    """Without the setter's key of this name at these places. Raises `UserError` if there is none."""
    there = tuple(key for key in snapshot.placement_keys if Place(key.level, key.resource) in places)
    named = tuple(key for key in there if key.name == name)
    own = SETTERS[setter]
    gone = tuple(key for key in named if key.key_class == own)
    if not gone:
        setters = [other for other, of in SETTERS.items() if any(key.key_class == of for key in named)]
        others = f"; there is one --as {' and one --as '.join(setters)}" if setters else ""
        hint = others or nearest(name, [key.name for key in there])
        raise UserError(f'no {own} key "{name}" is set there{hint}')
    return KeyChange(remove=gone)


def to_define(
    snapshot: Snapshot,
    name: str,
    cluster: str,
    values: Sequence[str],
    *,
    default: str | None = None,
    sticky: str | None = None,
) -> KeyChange:
    """A key on every host of a cluster; `values` are HOST=VALUE, `sticky` is a weight. Raises `UserError`."""
    found = find(cluster, "cluster", snapshot.clusters)
    hosts = snapshot.hosts_of_cluster.get(found.id, ())
    if not hosts:
        raise UserError(f"cluster {found.name} has no hosts to give a key")
    weight = None if sticky is None else _weight(sticky)
    put = (
        PlacementKey(
            level=NODE,
            resource=host,
            key_class=SYSTEM,
            name=name,
            value=value,
            weight=weight,
            sticky=weight is not None,
        )
        for host, value in _values(name, values, default, found, hosts).items()
    )
    return KeyChange(put=tuple(put))


def hosts_of(snapshot: Snapshot, cluster: str) -> frozenset[Place]:
    """Where keys of the hosts of a cluster stand; it is named by a word. Raises `UserError`."""
    found = find(cluster, "cluster", snapshot.clusters)
    return frozenset(Place(NODE, host.id) for host in snapshot.hosts_of_cluster.get(found.id, ()))


def decided(
    engine: Snapshot, standing: tuple[PlacementKey, ...], decide: Callable[[Snapshot], KeyChange]
) -> tuple[KeyChange, str]:
    """What is decided on the engine's objects and the keys that stand, and why it is not done."""
    state = replace(engine, placement_keys=standing)
    change = decide(state)
    return change, _objections(state, change)


def _objections(snapshot: Snapshot, change: KeyChange) -> str:
    """Why a change is not made, in one line; nothing, if it can be."""
    found = refusals(snapshot, change.put, change.remove)
    reasons = [
        f"{where_mistaken(one, snapshot)}: {', '.join(one.codes)}: {one.sentence}"
        for one in found[:_REPORTED]
    ]
    if len(found) > _REPORTED:
        reasons.append(f"and {len(found) - _REPORTED} more like these")
    if any(isinstance(one, MissingNodeKeys) for one in found):
        reasons.append("keys define, and keys unset --cluster, change a key on all hosts at once")
    return "; ".join(reasons)


def _values(
    name: str, given: Sequence[str], default: str | None, cluster: Cluster, hosts: tuple[Host, ...]
) -> dict[str, float | str]:
    """What each host of the cluster is given. Raises `UserError` if one that needs a value is given none."""
    values: dict[str, float | str] = {}
    for text in given:
        word, equals, value = text.rpartition("=")
        if not equals:
            raise UserError(f'"{text}": write it as HOST=VALUE')
        host = find(word, f"host of cluster {cluster.name}", hosts)
        if host.id in values:
            raise UserError(f"{host.name} is given two values")
        values[host.id] = _value(value)
    lacking = [host.name for host in hosts if host.id not in values]
    if lacking and default is None:
        if name in RATIO_NAMES:
            return values
        raise UserError(
            f"cluster {cluster.name}: {Code.NODE_KEY_SET_DIFFERS}: {name} needs a value on every host:"
            f" give {', '.join(lacking)} one, or all that are not named by --default"
        )
    return {host.id: values.get(host.id, _value(default or "")) for host in hosts}


def _as_on_other_hosts(key: PlacementKey, snapshot: Snapshot) -> PlacementKey:
    """With the weight and the sticky flag that it has there, or else on another host of the cluster."""
    hosts = {host.id for host in snapshot.hosts_of_cluster[snapshot.host_by_id[key.resource].cluster]}
    of_name = (one for one in snapshot.placement_keys if (one.level, one.name) == (NODE, key.name))
    alike = {one.resource: one for one in of_name if one.resource in hosts}
    known = alike.get(key.resource) or next(iter(alike.values()), None)
    sticky = known is not None and known.sticky
    if key.weight is not None and not sticky:
        raise UserError(f"{key_title(key, snapshot)}: keys of hosts have no weight, unless they are sticky")
    weight = known.weight if known is not None and sticky and key.weight is None else key.weight
    return replace(key, weight=weight, sticky=sticky)


def _value(text: str) -> float | str:
    """A number if it is one; else the word, which is refused with its code."""
    exact = number(text)
    return text if exact is None else float(exact)


def _weight(text: str) -> float:
    exact = number(text)
    if exact is None:
        raise UserError(f'the weight "{text}" is no number')
    return float(exact)


# -- What was changed of placement keys.
class KeysChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="keys_change"):
    """What was set, and what was removed; `forgotten` are ids of VMs that are gone from the engine."""

    #: The keys at the places that are set or removed, of those that are not the same afterwards.
    before: tuple[KeyRecord, ...]
    after: tuple[KeyRecord, ...]
    set: tuple[KeyRecord, ...]
    unset: tuple[KeyRecord, ...]
    forgotten: tuple[str, ...]
    #: Why what was set counts for less, or for nothing, in sentences.
    notes: tuple[str, ...]


def keys_change(
    snapshot: Snapshot,
    standing: Iterable[PlacementKey],
    change: KeyChange,
    forgotten: Iterable[str] = (),
    *,
    dry_run: bool,
) -> KeysChangeDocument:
    """What was set and removed, and the VMs whose frozen sets and sticky copies were `forgotten`."""
    there = {key.place: with_names(KeyRecord, key, snapshot) for key in standing}
    gone = {key.place for key in change.remove}
    put = {key.place: with_names(KeyRecord, key, snapshot) for key in change.put}
    fresh = {place: record for place, record in put.items() if there.get(place) != record}
    touched = [place for place in there if place in fresh or (place in gone and place not in put)]
    forgotten = tuple(forgotten)
    concerned = (one for key in change.put for one in clusters_of(key.level, key.resource, snapshot))
    return KeysChangeDocument(
        changed=bool(touched or fresh or forgotten),
        dry_run=dry_run,
        before=tuple(there[place] for place in touched),
        after=tuple(fresh.values()),
        set=tuple(put.values()),
        unset=tuple(with_names(KeyRecord, key, snapshot) for key in change.remove),
        forgotten=forgotten,
        notes=tuple(without_effect({one.id: one for one in concerned}.values())),
    )


def key_change_lines(answer: KeysChangeDocument) -> Iterator[str]:
    for key in answer.after:
        weight = written(key.weight)
        sticky = ", sticky" if key.sticky else ""
        yield f"set {key.sentence}: {written(key.value)}{f' ({weight})' if weight else ''}{sticky}"
    yield from (f"unset {key.sentence}" for key in answer.unset)
    yield from (f"forgot VM {vm}" for vm in answer.forgotten)
    if answer.dry_run and answer.changed:
        yield DRY_RUN
