"""Remembers the special keys that setup gave clusters, so that it takes back these and nothing else.

The keys themselves stand with all others. One that a user has changed or removed is theirs from then on.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ovirt_placement.model import PlacementKey
from ovirt_placement.model.placement_keys import CLUSTER, SYSTEM
from ovirt_placement.store.access import EngineRows, StoreAccess
from ovirt_placement.store.keys import KeyChange, change_keys, stored_keys
from ovirt_placement.store.placement_rules import revise
from ovirt_placement.store.schema import default_keys


class DefaultKey(msgspec.Struct, frozen=True):
    """A special key as setup gave it to a cluster."""

    cluster: str
    name: str
    weight: float
    #: The name of the policy that setup was about.
    policy: str

    @property
    def key(self) -> PlacementKey:
        """The key of the cluster: what it asks for is always 0."""
        return PlacementKey(
            level=CLUSTER,
            resource=self.cluster,
            key_class=SYSTEM,
            name=self.name,
            value=0.0,
            weight=self.weight,
        )


class DefaultKeyChange(msgspec.Struct, frozen=True):
    """What is to become of the keys that setup gave clusters."""

    #: Given, and remembered.
    give: tuple[DefaultKey, ...] = ()
    #: Given before, and from now on remembered as of another policy.
    renew: tuple[DefaultKey, ...] = ()
    #: Removed, and forgotten.
    take: tuple[DefaultKey, ...] = ()
    #: Forgotten: they are not as setup gave them any more.
    leave: tuple[DefaultKey, ...] = ()


class DefaultKeys(msgspec.Struct, frozen=True):
    """The keys that stand, and those that setup gave."""

    keys: tuple[PlacementKey, ...] = ()
    given: tuple[DefaultKey, ...] = ()


class DefaultKeyStore(StoreAccess):
    """The special keys that setup gave the clusters of one engine, in a database."""

    def read(self) -> DefaultKeys:
        """Return what stands, and what setup gave."""
        with self._transaction() as rows:
            return _read(rows)

    def change(self, decide: Callable[[DefaultKeys], DefaultKeyChange], *, set_by: str) -> DefaultKeyChange:
        """Make the change that is decided on what stands, all of it or nothing, and return it."""
        with self._transaction() as rows:
            revise(rows)
            change = decide(_read(rows))
            put = tuple(one.key for one in change.give)
            change_keys(rows, KeyChange(put=put, remove=tuple(one.key for one in change.take)), set_by)
            for gone in (*change.renew, *change.take, *change.leave):
                here = default_keys.c.cluster == gone.cluster, default_keys.c.name == gone.name
                rows.remove(default_keys, *here)
            rows.add_all(default_keys, [msgspec.structs.asdict(one) for one in (*change.give, *change.renew)])
        return change


def _read(rows: EngineRows) -> DefaultKeys:
    given = rows.select(default_keys).order_by(*default_keys.primary_key)
    return DefaultKeys(stored_keys(rows), rows.records(DefaultKey, given))
