"""Refuses placement keys of a state file that can be nowhere: unknown levels, resources, or set twice."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model.key_levels import CLASSES, CLUSTER, NODE, SERVER, check_level
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError


def check_keys(snapshot: Snapshot) -> None:
    """Check where keys are set; what is wrong with a key itself stops no placement and is not refused.

    Raises `UserError` for the first that is wrong, by its path: `placement_keys[3].level: unknown level`.
    """
    known: Mapping[str, tuple[str, Collection[str]]] = {
        CLUSTER: ("cluster", snapshot.cluster_by_id),
        SERVER: ("VM", snapshot.vm_by_id),
        NODE: ("host", snapshot.host_by_id),
    }
    first: dict[tuple[str, str, str, str], int] = {}
    for at, key in enumerate(snapshot.placement_keys):
        path = f"placement_keys[{at}]"
        _check_place(path, key, known)
        before = first.setdefault((key.level, key.resource, key.key_class, key.name), at)
        if before != at:
            raise UserError(f'{path}.name: "{key.name}" is set there by placement_keys[{before}] already')


def _check_place(path: str, key: PlacementKey, known: Mapping[str, tuple[str, Collection[str]]]) -> None:
    if key.key_class not in CLASSES:
        raise UserError(f'{path}.class: "{key.key_class}" is not one of {", ".join(CLASSES)}')
    check_level(key.level, f"{path}.level: ")
    if key.level in known:
        kind, ids = known[key.level]
        if key.resource not in ids:
            raise UserError(f'{path}.resource: no {kind} "{key.resource}"{nearest(key.resource, ids)}')
