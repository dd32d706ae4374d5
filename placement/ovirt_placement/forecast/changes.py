"""Changes that are asked about: hosts and VMs that are not there yet, and what must not come of it all."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.elements.memory import with_left
from ovirt_placement.store.keys import KeyChange, KeyPlace

#: What can be asked about; of each, what stands for it where no number is given.
MEASURES: Final = {
    "violated": ">0",
    "conflicts": ">0",
    "unplaced": ">0",
    "moves": ">0",
    "staying": ">0",
    "failures": "<1",
}
_OPERATORS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FORM: Final = re.compile(r"(\w+)\s*(?:(<=|>=|<|>)\s*(\d+))?\Z")


def with_group(snapshot: Snapshot, group: AffinityGroup) -> Snapshot:
    """With this group, in place of one that has its id."""
    others = (other for other in snapshot.affinity_groups if other.id != group.id)
    return replace(snapshot, affinity_groups=(*others, group))


def without_group(snapshot: Snapshot, group: str) -> Snapshot:
    return replace(
        snapshot, affinity_groups=tuple(other for other in snapshot.affinity_groups if other.id != group)
    )


def with_keys(snapshot: Snapshot, change: KeyChange) -> Snapshot:
    """With placement keys changed: some go, and others come in the place of those that stand there."""
    gone = {KeyPlace.of_key(key) for key in (*change.remove, *change.put)}
    kept = (key for key in snapshot.placement_keys if KeyPlace.of_key(key) not in gone)
    return replace(snapshot, placement_keys=(*kept, *change.put))


def with_host(snapshot: Snapshot, like: str, count: int) -> Snapshot:
    """With hosts as large as one that is known, in its cluster, up and empty; labels and tags are alike."""
    model = snapshot.host_by_id[like]
    empty = replace(
        with_left(model, *snapshot.vms_of_host.get(model.id, ())), status="up", cpu_percent=0, spm=False
    )
    new = tuple(replace(empty, id=name, name=name) for name in _names(model.name, count, snapshot))
    added = {host.id for host in new}
    return replace(
        snapshot,
        hosts=(*snapshot.hosts, *new),
        affinity_labels=tuple(
            replace(label, hosts=(*label.hosts, *sorted(added))) if model.id in label.hosts else label
            for label in snapshot.affinity_labels
        ),
    )


def with_vm(snapshot: Snapshot, like: str, count: int) -> tuple[Snapshot, tuple[str, ...]]:
    """With VMs like one that is known, which are down; they belong to the same affinity groups and labels."""
    model = snapshot.vm_by_id[like]
    down = replace(model, host=None, status="down", migrating_to=None)
    names = tuple(_names(model.name, count, snapshot))
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


@dataclass(frozen=True, slots=True)
class Condition:
    """It holds if a measure stands so to a number."""

    measure: str
    sign: str
    number: int

    def __str__(self) -> str:
        return f"{self.measure}{self.sign}{self.number}"


def conditions_of(text: str) -> tuple[Condition, ...]:
    """Read conditions with commas between them. Raises `ValueError` with what is wrong."""
    return tuple(_condition(word.strip()) for word in text.split(","))


def holding(conditions: Iterable[Condition], measured: Mapping[str, int | None]) -> tuple[str, ...]:
    """Those that hold, each with what was measured; of what is not known none does."""
    return tuple(
        f"{one} ({value})"
        for one in conditions
        if (value := measured[one.measure]) is not None and _OPERATORS[one.sign](value, one.number)
    )


def _condition(word: str) -> Condition:
    match = _FORM.match(word)
    if match is None or match[1] not in MEASURES:
        raise ValueError(f'"{word}": write {", ".join(MEASURES)}, or one of them with a number as in moves>5')
    if match[2] is None:
        return _condition(match[1] + MEASURES[match[1]])
    return Condition(match[1], match[2], int(match[3]))
