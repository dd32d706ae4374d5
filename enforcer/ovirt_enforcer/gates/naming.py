"""How the configuration names clusters, VMs, hosts and groups: by their names or by their ids."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, TypeVar

from ovirt_placement.model import Snapshot

#: Stands for all that are not named.
ALL_OTHERS: Final = "*"

_Value = TypeVar("_Value")


def named(names: Collection[str], identity: str, name: str) -> bool:
    """Whether a list of names and ids has this one."""
    return identity in names or name in names


def value_of(values: Mapping[str, _Value], identity: str, name: str) -> _Value | None:
    """What a table says of this one: by its id, by its name, or as of all that are not named."""
    return values.get(identity, values.get(name, values.get(ALL_OTHERS)))


def plain_group_name(group: str, snapshot: Snapshot) -> str:
    """The bare name of an affinity group, or of a legacy label; its id where it is gone."""
    known = snapshot.group_by_id.get(group) or snapshot.label_by_id.get(group)
    return known.name if known else group


def group_ids(snapshot: Snapshot) -> tuple[str, ...]:
    """All that a step can repair by name: affinity groups, and legacy labels that act as some."""
    return (*snapshot.group_by_id, *(label.id for label in snapshot.affinity_labels if label.implicit))
