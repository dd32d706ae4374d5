"""What a person means by setting and removing placement keys: for commands, and for the page."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from ovirt_placement.answers.document import find
from ovirt_placement.answers.keys.sentences import key_title, mistake_place, mistake_sentence
from ovirt_placement.model import Cluster, Host, PlacementKey, Snapshot
from ovirt_placement.model.key_levels import BILLING_ENTITY, CUSTOMER, NODE, SYSTEM, level_of
from ovirt_placement.model.key_resources import Place, find_resource
from ovirt_placement.rules.placement_keys.exact import number
from ovirt_placement.rules.placement_keys.keys import RATIO_NAMES, Code
from ovirt_placement.rules.placement_keys.mistakes import MissingNodeKeys, refusals
from ovirt_placement.store.keys import KeyChange
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

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


def objections(snapshot: Snapshot, change: KeyChange) -> str:
    """Why a change is not made, in one line; nothing, if it can be."""
    found = refusals(snapshot, change.put, change.remove)
    reasons = [
        f"{mistake_place(one, snapshot)}: {', '.join(one.codes)}: {mistake_sentence(one)}"
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
    alike = sorted(_of_its_cluster(key, snapshot), key=lambda other: other.resource != key.resource)
    sticky = bool(alike) and alike[0].sticky
    if key.weight is not None and not sticky:
        raise UserError(f"{key_title(key, snapshot)}: keys of hosts have no weight, unless they are sticky")
    weight = alike[0].weight if sticky and key.weight is None else key.weight
    return replace(key, weight=weight, sticky=sticky)


def _of_its_cluster(key: PlacementKey, snapshot: Snapshot) -> Iterator[PlacementKey]:
    """The keys of its name on the hosts of the cluster that its host belongs to."""
    cluster = snapshot.host_by_id[key.resource].cluster
    alike = {host.id for host in snapshot.hosts_of_cluster[cluster]}
    for other in snapshot.placement_keys:
        if (other.level, other.name) == (NODE, key.name) and other.resource in alike:
            yield other


def _value(text: str) -> float | str:
    """A number if it is one; else the word, which is refused with its code."""
    exact = number(text)
    return text if exact is None else float(exact)


def _weight(text: str) -> float:
    exact = number(text)
    if exact is None:
        raise UserError(f'the weight "{text}" is no number')
    return float(exact)
