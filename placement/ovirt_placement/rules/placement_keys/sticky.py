"""Step 6: a VM that starts takes the sticky keys of its host along, and is drawn to their like ever after."""

from __future__ import annotations

from collections.abc import Iterable

from ovirt_placement.model import PlacementKey, StickyCopy
from ovirt_placement.model.key_levels import STICKY, SYSTEM
from ovirt_placement.rules.placement_keys.exact import ZERO, number
from ovirt_placement.rules.placement_keys.keys import KeyKind, ignored_because, key_kind


def sticky_keys(own: Iterable[PlacementKey]) -> tuple[PlacementKey, ...]:
    """Of the keys of a host, those that a VM takes along when it starts there; none with mistakes."""
    return tuple(key for key in own if key_kind(key) is KeyKind.STICKY and not ignored_because(key))


def copies_after_start(
    vm: str, copies: Iterable[StickyCopy], sticky: Iterable[PlacementKey]
) -> tuple[StickyCopy, ...]:
    """The copies of a VM once it has started on a host with these sticky keys.

    A copy of the same name is replaced, others stay. A migration copies nothing.
    """
    fresh = {
        key.name: StickyCopy(
            vm=vm,
            name=key.name,
            value=float(number(key.value) or ZERO),
            weight=float(number(key.weight) or ZERO),
        )
        for key in sticky
    }
    kept = {copy.name: copy for copy in copies if copy.vm == vm}
    return tuple((kept | fresh).values())


def as_key(copy: StickyCopy) -> PlacementKey:
    """A copy as it takes part in the compilation of its VM's keys: the operator's, just below the server."""
    return PlacementKey(
        level=STICKY,
        resource=copy.vm,
        key_class=SYSTEM,
        name=copy.name,
        value=copy.value,
        weight=copy.weight,
    )
