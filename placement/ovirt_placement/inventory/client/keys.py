"""Lays the placement keys and rules of the store over a snapshot: the engine knows of none."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ovirt_placement.inventory.client.stored import loaded
from ovirt_placement.inventory.on_demand.details import VM_TAGS
from ovirt_placement.inventory.on_demand.searches import NO_SEARCHES, Wanted, searches_of
from ovirt_placement.model import Snapshot
from ovirt_placement.model.key_levels import CLUSTER, NODE, SERVER
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.store.keys import KeyRecords, KeyStore


def as_recorded(snapshot: Snapshot, records: KeyRecords | None) -> Snapshot:
    """Return the snapshot with the keys and rules as they are recorded; without records, as it is.

    Keys of objects that are gone are among them: rules pass over these, and while the keys stay the same, so
    do the lists of them.
    """
    if records is None:
        return snapshot
    return replace(
        snapshot,
        placement_keys=records.keys,
        frozen_keys=records.frozen,
        sticky_copies=records.copies,
        placement_rules=records.rules,
        draining_hosts=records.draining,
    )


def with_keys(snapshot: Snapshot, records: KeyRecords) -> Snapshot:
    """Return the snapshot with the keys that are recorded, but for those of objects that are gone."""
    return without_lost_keys(as_recorded(snapshot, records))


def without_lost_keys(snapshot: Snapshot) -> Snapshot:
    """Leave out the keys of objects that are gone, which a state file may not name."""
    hosts, vms = snapshot.host_by_id, snapshot.vm_by_id
    known: Mapping[str, Collection[str]] = {CLUSTER: snapshot.cluster_by_id, SERVER: vms, NODE: hosts}
    return replace(
        snapshot,
        placement_keys=tuple(
            key
            for key in snapshot.placement_keys
            if key.level not in known or key.resource in known[key.level]
        ),
        frozen_keys=tuple(frozen for frozen in snapshot.frozen_keys if frozen.vm in vms),
        sticky_copies=tuple(copy for copy in snapshot.sticky_copies if copy.vm in vms),
        draining_hosts=tuple(host for host in snapshot.draining_hosts if host in hosts),
    )


def levels(records: KeyRecords | None) -> frozenset[str]:
    """Say on which levels there are keys; tags of VMs count as one where a placement rule names some."""
    if records is None:
        return frozenset()
    tagged = any(rule.names_vm_tags for rule in records.rules)
    return frozenset(key.level for key in records.keys).union([VM_TAGS] if tagged else ())


def names_host_tags(records: KeyRecords | None) -> bool:
    """Say whether a placement rule goes by the tags of hosts."""
    return records is not None and any(rule.names_host_tags for rule in records.rules)


def searches(records: KeyRecords | None) -> Wanted:
    """The searches that placement rules name."""
    return NO_SEARCHES if records is None else searches_of(records.rules)


class KeyReader:
    """Reads the placement keys of an engine in a store, all of them when there are others."""

    def __init__(self, url: str, engine: str, patience_seconds: float) -> None:
        self._url = url
        self._engine = engine
        self._patience_seconds = patience_seconds
        self._store: KeyStore | None = None

    def close(self) -> None:
        """Close the store; another reading opens it again."""
        if self._store is not None:
            self._store.close()

    def __call__(self, known: KeyRecords | None) -> KeyRecords | None:
        """Return the records, the known ones if they still hold; None if there is no store yet.

        Raises `UserError` if the store is away, also one that was there before.
        """
        if not loaded(self._url):
            return _unless_known(known, f"store {self._url}: is not there any more")
        from ovirt_placement.store.database import StoreUnmade
        from ovirt_placement.store.keys import KeyStore

        if self._store is None:
            self._store = KeyStore(
                self._url, engine=self._engine, patience_seconds=self._patience_seconds, create=False
            )
        try:
            same = known is not None and self._store.revision() == known.revision
            return known if same else self._store.records()
        except StoreUnmade as error:
            return _unless_known(known, str(error))


def _unless_known(known: KeyRecords | None, error: str) -> KeyRecords | None:
    """A store that nobody has made yet holds no keys; one that was there before is away."""
    if known is not None:
        raise UserError(error)
    return known
