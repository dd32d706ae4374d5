"""Reads and writes placement keys as YAML, with the names that people know in place of ids."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ovirt_placement.model import PlacementKey, Snapshot, Struct
from ovirt_placement.model.files import yaml_file
from ovirt_placement.model.names import find_resource, resource_word
from ovirt_placement.model.placement_keys import CLASSES, CLUSTER, NODE, SYSTEM, check_level, check_text
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError, placed

#: Above this not every whole number has a float of its own, and digits would only look exact.
_EXACT = 2**53


class NodeKey(Struct, frozen=True):
    """A key of the hosts of a cluster: what each of them has for a value."""

    cluster: str
    name: str
    values: dict[str, float | str]
    weight: float | None = None
    sticky: bool = False


class Key(Struct, frozen=True, kw_only=True):
    """A key as in a state file; the class may be left to who imports it."""

    level: str
    resource: str
    key_class: str | None = msgspec.field(name="class", default=None)
    name: str
    value: float | str
    weight: float | None = None
    sticky: bool = False


class KeyFile(yaml_file.Formatted, frozen=True):
    """All keys of one file."""

    node_keys: tuple[NodeKey, ...] = ()
    keys: tuple[Key, ...] = ()


def load(path: Path, snapshot: Snapshot, key_class: str = SYSTEM) -> tuple[PlacementKey, ...]:
    """Read the keys of a file, found in the snapshot; `key_class` is that of keys which do not say.

    What is wrong with a key itself is left to the rules. Raises `UserError` if the file cannot be read,
    has another form, or names what the snapshot does not hold; the message names the place.
    """
    return yaml_file.load(path, "keys", lambda content: loads(content, snapshot, key_class))


def loads(content: bytes, snapshot: Snapshot, key_class: str = SYSTEM) -> tuple[PlacementKey, ...]:
    """Decode a file's content; raises `UserError` as `load` does, without the name of the file."""
    file = yaml_file.decode(content, KeyFile)
    found: dict[tuple[str, str, str, str], str] = {}
    keys = []
    for path, key in (*_node_keys(file, snapshot), *_keys(file, snapshot, key_class)):
        before = found.setdefault((key.level, key.resource, key.key_class, key.name), path)
        if before != path:
            raise UserError(f'{path}: "{key.name}" is set there by {before} already')
        with placed(f"{path}."):
            check_text(key)
        keys.append(key)
    return tuple(keys)


def described(keys: Iterable[PlacementKey], snapshot: Snapshot) -> dict[str, object]:
    """The content of a file from which `loads` reads the same again, in any order."""
    of_hosts: dict[tuple[str, str, float | None, bool], dict[str, Any]] = defaultdict(dict)
    others = []
    for key in keys:
        host = snapshot.host_by_id.get(key.resource) if key.level == NODE else None
        word = resource_word(key.level, key.resource, snapshot)
        if host is None or key.key_class != SYSTEM:
            others.append({"level": key.level, "resource": word, "class": key.key_class, **_said(key)})
        else:
            of_hosts[host.cluster, key.name, key.weight, key.sticky][word] = _number(key.value)
    node_keys = [
        {"cluster": resource_word(CLUSTER, cluster, snapshot), "name": name}
        | _flags(weight, sticky)
        | {"values": values}
        for (cluster, name, weight, sticky), values in of_hosts.items()
    ]
    return {"format": yaml_file.FORMAT, "node_keys": node_keys, "keys": others}


def _node_keys(file: KeyFile, snapshot: Snapshot) -> Iterator[tuple[str, PlacementKey]]:
    for at, entry in enumerate(file.node_keys):
        path = f"node_keys[{at}]"
        cluster = _resource(f"{path}.cluster", CLUSTER, entry.cluster, snapshot)
        for word, value in entry.values.items():
            host = _resource(f"{path}.values", NODE, word, snapshot)
            if snapshot.host_by_id[host].cluster != cluster:
                raise UserError(f'{path}.values: host "{word}" is not of cluster "{entry.cluster}"')
            yield (
                f"{path}.values.{word}",
                PlacementKey(
                    level=NODE,
                    resource=host,
                    key_class=SYSTEM,
                    name=entry.name,
                    value=value,
                    weight=entry.weight,
                    sticky=entry.sticky,
                ),
            )


def _keys(file: KeyFile, snapshot: Snapshot, key_class: str) -> Iterator[tuple[str, PlacementKey]]:
    for at, entry in enumerate(file.keys):
        path = f"keys[{at}]"
        if entry.key_class not in {None, *CLASSES}:
            hint = nearest(entry.key_class or "", CLASSES)
            raise UserError(f'{path}.class: "{entry.key_class}" is not one of {", ".join(CLASSES)}{hint}')
        check_level(entry.level, f"{path}.level: ")
        fields = msgspec.structs.asdict(entry)
        fields["key_class"] = entry.key_class or key_class
        fields["resource"] = _resource(f"{path}.resource", entry.level, entry.resource, snapshot)
        yield path, PlacementKey(**fields)


def _resource(path: str, level: str, word: str, snapshot: Snapshot) -> str:
    with placed(f"{path}: "):
        return find_resource(level, word, snapshot)


def _said(key: PlacementKey) -> dict[str, Any]:
    return {"name": key.name, "value": _number(key.value), **_flags(key.weight, key.sticky)}


def _flags(weight: float | None, sticky: bool) -> dict[str, Any]:
    said: dict[str, Any] = {} if weight is None else {"weight": _number(weight)}
    return {**said, "sticky": True} if sticky else said


def _number(value: float | str) -> float | int | str:
    """Whole numbers as people write them."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < _EXACT
    return int(value) if whole else value
