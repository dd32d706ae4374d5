"""Hosts and VMs that are not there yet, each like one that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.memory import with_left


@dataclass(frozen=True, slots=True)
class Like:
    """More of a kind, with their number."""

    #: The host or VM that they are like, by id.
    model: str
    count: int = 1


def with_host(snapshot: Snapshot, like: Like) -> Snapshot:
    """With hosts as large as one that is known, in its cluster, up and empty; labels and tags are alike."""
    model = snapshot.host_by_id[like.model]
    empty = replace(
        with_left(model, *snapshot.vms_of_host.get(model.id, ())), status="up", cpu_percent=0, spm=False
    )
    new = tuple(replace(empty, id=name, name=name) for name in _names(model.name, like.count, snapshot))
    added = {host.id for host in new}
    return replace(
        snapshot,
        hosts=(*snapshot.hosts, *new),
        affinity_labels=tuple(
            replace(label, hosts=(*label.hosts, *sorted(added))) if model.id in label.hosts else label
            for label in snapshot.affinity_labels
        ),
    )


def with_vm(snapshot: Snapshot, like: Like) -> tuple[Snapshot, tuple[str, ...]]:
    """With VMs like one that is known, which are down; they belong to the same affinity groups and labels."""
    model = snapshot.vm_by_id[like.model]
    down = replace(model, host=None, status="down", migrating_to=None)
    names = tuple(_names(model.name, like.count, snapshot))
    new = tuple(replace(down, id=name, name=name) for name in names)
    added = replace(
        snapshot,
        vms=(*snapshot.vms, *new),
        affinity_groups=tuple(
            replace(group, vms=(*group.vms, *names)) if model.id in group.vms else group
            for group in snapshot.affinity_groups
        ),
        affinity_labels=tuple(
            replace(label, vms=(*label.vms, *names)) if model.id in label.vms else label
            for label in snapshot.affinity_labels
        ),
    )
    return added, names


def _names(model: str, count: int, snapshot: Snapshot) -> Iterator[str]:
    """Names that nobody has; they are ids, too."""
    names = {*(vm.name for vm in snapshot.vms), *(host.name for host in snapshot.hosts)}
    known = {*snapshot.vm_by_id, *snapshot.host_by_id, *names}
    number = 0
    while count:
        number += 1
        name = f"{model}+{number}"
        if name not in known:
            count -= 1
            yield name
