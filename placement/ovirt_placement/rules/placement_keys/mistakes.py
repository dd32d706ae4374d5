"""Finds what is wrong with the placement keys of a snapshot, so that somebody mends it."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.model.key_levels import NODE
from ovirt_placement.rules.placement_keys.compile import MistakenKey
from ovirt_placement.rules.placement_keys.hierarchy import keys_by_resource
from ovirt_placement.rules.placement_keys.keys import Code, missing_node_keys, validate
from ovirt_placement.rules.placement_keys.property import NAME, is_readable, property_keys
from ovirt_placement.rules.verdict import Struct


class UnreadableProperty(Struct, frozen=True):
    """A VM whose own property holds something else than keys: all of it is ignored."""

    vm: str
    text: str

    @property
    def codes(self) -> tuple[Code, ...]:
        return (Code.PROPERTY_UNREADABLE,)


class MissingNodeKeys(Struct, frozen=True):
    """Names that other hosts of the cluster carry and this one lacks; there they count nothing."""

    host: str
    names: tuple[str, ...]

    @property
    def codes(self) -> tuple[Code, ...]:
        return (Code.NODE_KEY_SET_DIFFERS,)


Mistake = MistakenKey | UnreadableProperty | MissingNodeKeys


def find_mistakes(snapshot: Snapshot) -> tuple[Mistake, ...]:
    """All mistakes: of keys as they were written, of VMs' properties, of the hosts of a cluster."""
    from_properties = [key for vm in snapshot.vms for key in property_keys(vm)]
    keys = (*snapshot.placement_keys, *from_properties)
    return (
        *(MistakenKey(key, codes) for key in keys if (codes := validate(key))),
        *(
            UnreadableProperty(vm.id, vm.custom_properties[NAME])
            for vm in snapshot.vms
            if not is_readable(vm.custom_properties.get(NAME, ""))
        ),
        *(missing for cluster in snapshot.clusters for missing in _missing(snapshot, cluster)),
    )


def _missing(snapshot: Snapshot, cluster: Cluster) -> Iterator[MissingNodeKeys]:
    known = keys_by_resource(snapshot)
    carried = {
        host.id: [key.name for key in known.get((NODE, host.id), ())]
        for host in snapshot.hosts_of_cluster.get(cluster.id, ())
    }
    return (MissingNodeKeys(host, names) for host, names in missing_node_keys(carried).items())
