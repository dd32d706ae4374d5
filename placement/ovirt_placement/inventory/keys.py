"""Lays the placement keys of the store over a snapshot: the engine knows of none."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ovirt_placement.key_levels import CLUSTER, NODE, SERVER
from ovirt_placement.model import Snapshot

if TYPE_CHECKING:
    from ovirt_placement.store_keys import KeyRecords


def with_keys(snapshot: Snapshot, records: KeyRecords) -> Snapshot:
    """Return the snapshot with the keys as they are recorded, but for those of objects that are gone."""
    hosts, vms = snapshot.host_by_id, snapshot.vm_by_id
    known: Mapping[str, Collection[str]] = {CLUSTER: snapshot.cluster_by_id, SERVER: vms, NODE: hosts}
    return replace(
        snapshot,
        placement_keys=tuple(
            key for key in records.keys if key.level not in known or key.resource in known[key.level]
        ),
        frozen_keys=tuple(frozen for frozen in records.frozen if frozen.vm in vms),
        sticky_copies=tuple(copy for copy in records.copies if copy.vm in vms),
    )
