"""Names for ids, as administrators know them; an id that has no name stands as it is."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.record import Record


class Named(Record, frozen=True):
    """Something of the engine's, as answers tell of it as data."""

    id: str
    name: str


def vm_name(vm_id: str, snapshot: Snapshot) -> str:
    known = snapshot.vm_by_id.get(vm_id)
    return known.name if known else vm_id


def host_name(host_id: str, snapshot: Snapshot) -> str:
    known = snapshot.host_by_id.get(host_id)
    return known.name if known else host_id


def group_name(group_id: str, snapshot: Snapshot) -> str:
    """An affinity group, or a legacy label that acts as one, with the word for what it is."""
    if group_id in snapshot.label_by_id:
        return f"affinity label {snapshot.label_by_id[group_id].name}"
    known = snapshot.group_by_id.get(group_id)
    return f"affinity group {known.name if known else group_id}"
