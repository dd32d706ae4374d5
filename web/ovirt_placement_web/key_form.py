"""A placement key as a form has it, and what is meant: on one object, or on all hosts of a cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ovirt_placement.answers.keys.change import SETTERS, hosts_of, to_define, to_set, to_unset
from ovirt_placement.answers.keys.key import written, written_weight
from ovirt_placement.model import Cluster, PlacementKey, Snapshot
from ovirt_placement.model.key_resources import clusters_of, find_place, find_resource, resource_word
from ovirt_placement.model.placement_keys import NODE, SERVER, SETTABLE
from ovirt_placement.store.keys import KeyChange, KeyPlace
from ovirt_placement_web.bounds import Refusal
from ovirt_service.errors import UserError
from ovirt_service.legible import escaped

_LONGEST = 255
#: Who sets keys of a class.
SETTER_OF = {key_class: setter for setter, key_class in SETTERS.items()}


class KeyForm(NamedTuple):
    """What stands in the fields for a key of one object."""

    level: str
    #: The name or id of the object.
    on: str
    setter: str
    name: str
    value: str = ""
    weight: str = ""


class HostsForm(NamedTuple):
    """What stands in the fields for a key of all hosts of a cluster, which its id names."""

    cluster: str
    name: str
    #: HOST=VALUE, a host a line.
    values: str = ""
    sticky: str = ""


class Meant(NamedTuple):
    """What somebody asks for: where, and how it is decided on the keys as they stand."""

    act: str
    level: str
    #: What names the object, if it is one.
    words: tuple[str, ...]
    #: Where it is done, for the audit log.
    on: str
    #: Those whose placements it changes.
    clusters: tuple[Cluster, ...]
    back: str
    decide: Callable[[Snapshot], KeyChange]


def sent_key(form: Mapping[str, str]) -> KeyForm:
    """What somebody has filled in."""
    level, setter = form.get("level", ""), form.get("as", "operator")
    if level not in SETTABLE or setter not in SETTERS:
        raise Refusal(400, "There is no such level or class of keys.")
    on, name, value, weight = (_short(form, field) for field in ("on", "name", "value", "weight"))
    return KeyForm(level, on, setter, name, value, weight)


def sent_hosts(form: Mapping[str, str]) -> HostsForm:
    values = form.get("values", "").replace("\r\n", "\n")
    return HostsForm(form.get("cluster", ""), _short(form, "name"), values, _short(form, "sticky"))


def key_filled(form: KeyForm, keys: Iterable[PlacementKey], snapshot: Snapshot) -> KeyForm:
    """With the object as it is called, and what stands there."""
    try:
        place = find_place((form.level, form.on), keys, snapshot) if form.on else None
    except UserError:
        return form
    resource = place.resource if place else None
    if resource is None:
        return form
    there = (form.level, resource, SETTERS[form.setter], form.name)
    found = next((key for key in keys if KeyPlace.of(key) == there), None)
    filled = form._replace(on=_legible(resource_word(form.level, resource, snapshot), resource))
    if found is None:
        return filled
    return filled._replace(value=written(found.value), weight=written_weight(found.weight))


def hosts_filled(form: HostsForm, keys: Iterable[PlacementKey], snapshot: Snapshot) -> HostsForm:
    """With a line for each host of the cluster, and what stands there."""
    there = {key.resource: key for key in keys if key.level == NODE and key.name == form.name}
    hosts = snapshot.hosts_of_cluster.get(form.cluster, ())
    lines = [
        f"{_legible(resource_word(NODE, host.id, snapshot), host.id)}="
        f"{written(there[host.id].value) if host.id in there else ''}"
        for host in hosts
    ]
    sticky = next((key.weight for key in there.values() if key.sticky), None)
    return form._replace(values="\n".join(lines), sticky=written_weight(sticky))


def key_meant(form: KeyForm, snapshot: Snapshot, *, gone: bool) -> Meant:
    """A key to be set, or to be `gone`; raises `Refusal` if the object is not known."""

    def decide(state: Snapshot) -> KeyChange:
        if gone:
            place = find_place((form.level, form.on), state.placement_keys, state)
            return to_unset(state, form.name, (place,), form.setter)
        weight = form.weight or None
        return to_set(state, form.name, form.value, weight, (form.level, form.on), form.setter)

    return Meant(
        act="key unset" if gone else "key set",
        level=form.level,
        words=() if gone else (form.on,),
        on=f"{form.setter}'s placement key {form.name} on {form.level} {form.on}",
        clusters=clusters_named(form.level, form.on, snapshot),
        back=_back(form, snapshot),
        decide=decide,
    )


def hosts_meant(form: HostsForm, snapshot: Snapshot, *, gone: bool) -> Meant:
    """A key of all hosts of a cluster, to be set or to be `gone`."""
    cluster = snapshot.cluster_by_id.get(form.cluster)
    if cluster is None:
        raise Refusal(404, "There is no such cluster.")

    def decide(state: Snapshot) -> KeyChange:
        if gone:
            return to_unset(state, form.name, hosts_of(state, form.cluster), "operator")
        values = [line.strip() for line in form.values.split("\n") if line.strip()]
        return to_define(state, form.name, form.cluster, values, sticky=form.sticky or None)

    return Meant(
        act="key unset of hosts" if gone else "key define",
        level=NODE,
        words=(),
        on=f"placement key {form.name} of the hosts of cluster {cluster.name} ({cluster.id})",
        clusters=(cluster,),
        back="/keys",
        decide=decide,
    )


def clusters_named(level: str, word: str, snapshot: Snapshot) -> tuple[Cluster, ...]:
    """The clusters whose placements a key there may change; all, where nobody knows what is meant."""
    try:
        return clusters_of(level, find_resource(level, word, snapshot), snapshot)
    except UserError:
        return snapshot.clusters


def state_of(change: KeyChange, keys: Iterable[PlacementKey]) -> str:
    """Another text once anything stands otherwise where a change is to be made."""
    places = touched(change)
    there = sorted((key for key in keys if KeyPlace.of(key) in places), key=KeyPlace.of)
    return hashlib.sha256(msgspec.json.encode((sorted(places), there))).hexdigest()[:16]


def touched(change: KeyChange) -> frozenset[KeyPlace]:
    return frozenset(KeyPlace.of(key) for key in (*change.put, *change.remove))


def _short(form: Mapping[str, str], field: str) -> str:
    word = form.get(field, "").strip()
    if len(word) > _LONGEST:
        raise Refusal(400, f"{field}: {_LONGEST} characters at most")
    return word


def _back(form: KeyForm, snapshot: Snapshot) -> str:
    """Where the key is seen."""
    try:
        resource = find_resource(form.level, form.on, snapshot)
    except UserError:
        return "/keys"
    views: Mapping[str, Sequence[str]] = {SERVER: ("/vm/", "/keys"), NODE: ("/host/", "")}
    before, after = views.get(form.level, ("", ""))
    return f"{before}{resource}{after}" if before else "/keys"


def _legible(word: str, identity: str) -> str:
    """A name that a form can show and send back; else the id."""
    return word if word == escaped(word).strip() and "\n" not in word else identity
