"""A placement key, and what it is set on."""

from __future__ import annotations

from typing import Any

import msgspec

from ovirt_placement.answers.keys.sentences import key_place, key_title
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model.key_resources import resource_name
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.keys import KeyKind, key_kind


class KeyRecord(Record, frozen=True, omit_defaults=False, kw_only=True):
    """A placement key, and what it is set on."""

    kind: KeyKind
    #: What it is and what it is set on, in words.
    sentence: str
    #: The level and the name of what it is set on.
    place: str
    level: str
    resource: Named
    key_class: str = msgspec.field(name="class")
    name: str
    value: float | str
    weight: float | None
    sticky: bool


def key_record(key: PlacementKey, snapshot: Snapshot) -> KeyRecord:
    """A key, with names."""
    return KeyRecord(**key_fields(key, snapshot))


def key_fields(key: PlacementKey, snapshot: Snapshot) -> dict[str, Any]:
    """What `KeyRecord` has, for records that have more."""
    return {
        "kind": key_kind(key),
        "sentence": key_title(key, snapshot),
        "place": key_place(key, snapshot),
        "level": key.level,
        "resource": Named(key.resource, resource_name(key.level, key.resource, snapshot)),
        "key_class": key.key_class,
        "name": key.name,
        "value": key.value,
        "weight": key.weight,
        "sticky": key.sticky,
    }
