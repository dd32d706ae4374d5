"""Placement keys: those that people set, and those that VMs are remembered by."""

from __future__ import annotations

import msgspec

from ovirt_placement.model.record import Struct


class PlacementKey(Struct, frozen=True):
    level: str
    resource: str
    #: The class of key: system, be or customer.
    key_class: str = msgspec.field(name="class")
    name: str
    #: A number, or whatever its author wrote in place of one.
    value: float | str
    weight: float | None = None
    sticky: bool = False


class FrozenKeys(Struct, frozen=True):
    vm: str
    keys: tuple[tuple[str, float], ...]


class StickyCopy(Struct, frozen=True):
    vm: str
    name: str
    value: float
    weight: float
