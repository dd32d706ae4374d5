"""Builds keys and snapshots for tests of placement keys in one line each."""

from __future__ import annotations

from typing import Any

import msgspec

from ovirt_placement.model import FrozenKeys, PlacementKey, Snapshot, StickyCopy
from tests import builders as build


def key(
    name: str,
    value: float | str = 1.0,
    weight: float | None = 100.0,
    level: str = "server",
    key_class: str = "system",
    **fields: Any,
) -> PlacementKey:
    """A key of a resource; the VM "new" itself, unless a test says otherwise."""
    defaults: dict[str, Any] = {"resource": "new", "sticky": False}
    return PlacementKey(
        level=level, key_class=key_class, name=name, value=value, weight=weight, **{**defaults, **fields}
    )


def node_key(host: str, name: str, value: float | str = 1.0, **fields: Any) -> PlacementKey:
    return key(name, value, fields.pop("weight", None), "node", resource=host, **fields)


def keyed(
    *parts: build.Part,
    keys: tuple[PlacementKey, ...] = (),
    frozen: dict[str, dict[str, float]] | None = None,
    copies: tuple[StickyCopy, ...] = (),
    **fields: Any,
) -> Snapshot:
    """A snapshot with keys; `frozen` shows the recorded keys of running VMs."""
    records = tuple(FrozenKeys(vm=vm, keys=tuple(one.items())) for vm, one in (frozen or {}).items())
    return msgspec.structs.replace(
        build.snapshot(*parts), placement_keys=keys, frozen_keys=records, sticky_copies=copies, **fields
    )
