"""The hosts that the operator's keys of a VM accept wherever other VMs run."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.placement_keys.host_table import host_table
from ovirt_placement.rules.placement_keys.keys import is_special
from ovirt_placement.rules.placement_keys.placing import compiled_keys, storage_is_local
from ovirt_placement.rules.placement_keys.presence import host_places
from ovirt_placement.rules.placement_keys.rounds import rounds_of, thresholds
from ovirt_placement.rules.placement_keys.score import score
from ovirt_placement.rules.placement_keys.settings import KeySettings


def enduring_hosts(snapshot: Snapshot, vm: str, settings: KeySettings) -> frozenset[str] | None:
    """Room aside; None where keys have no say, or special ones, which change with what hosts run."""
    keys = compiled_keys(snapshot, vm)
    if storage_is_local(snapshot, snapshot.vm_by_id[vm].cluster) or any(map(is_special, keys.system)):
        return None
    table, to_exceed = host_table(snapshot, settings), thresholds(settings)
    system = score(keys.system.values(), table.lists.system, len(table.ids), compared_with=to_exceed)
    places = host_places(snapshot)
    rounds = rounds_of((system.parts[place] for place in places.values()), system.unit, to_exceed)
    return frozenset(host for host, number in zip(places, rounds, strict=True) if number is not None)
