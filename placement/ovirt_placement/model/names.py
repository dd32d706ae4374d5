"""Names for ids, as administrators know them; an id without a name stands as it is. And counts in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record


class Named(Record, frozen=True):
    """Something of the engine's, as it stands in answers."""

    id: str
    name: str


class NamedGroup(Named, frozen=True):
    """An affinity group, or a legacy label that acts as one."""

    is_label: bool = False
    #: Whether it is a placement rule of ours, which the engine does not know.
    is_rule: bool = False

    @property
    def title(self) -> str:
        """Its name with the word for what it is."""
        if self.is_rule:
            return f"placement rule {self.name}"
        return f"affinity {'label' if self.is_label else 'group'} {self.name}"


def choices(found: Iterable[object], snapshot: Snapshot | None) -> str:
    """Things of one name by their ids, each with its cluster; with its host where they share a cluster."""
    several = list(found)
    clusters = [getattr(one, "cluster", None) for one in several]
    said = []
    for one, cluster in zip(several, clusters, strict=True):
        where = ""
        if snapshot is not None and cluster is not None and len(set(clusters)) > 1:
            where = f" (cluster {named_cluster(cluster, snapshot).name})"
        elif snapshot is not None and hasattr(one, "host"):
            where = " (down)" if one.host is None else f" (host {host_name(one.host, snapshot)})"
        said.append(f"{getattr(one, 'id', one)}{where}")
    return " or ".join(said)


def vm_name(vm_id: str, snapshot: Snapshot) -> str:
    known = snapshot.vm_by_id.get(vm_id)
    return known.name if known else vm_id


def host_name(host_id: str, snapshot: Snapshot) -> str:
    known = snapshot.host_by_id.get(host_id)
    return known.name if known else host_id


def group_name(group_id: str, snapshot: Snapshot) -> str:
    """An affinity group, or a legacy label that acts as one, with the word for what it is."""
    return named_group(group_id, snapshot).title


def named_vm(vm_id: str, snapshot: Snapshot) -> Named:
    return Named(vm_id, vm_name(vm_id, snapshot))


def named_host(host_id: str, snapshot: Snapshot) -> Named:
    return Named(host_id, host_name(host_id, snapshot))


def named_cluster(cluster_id: str, snapshot: Snapshot) -> Named:
    known = snapshot.cluster_by_id.get(cluster_id)
    return Named(cluster_id, known.name if known else cluster_id)


def named_group(group_id: str, snapshot: Snapshot) -> NamedGroup:
    """An affinity group, a legacy label that acts as one, or a placement rule."""
    rule = snapshot.rule_by_id.get(group_id)
    if rule is not None:
        return NamedGroup(group_id, rule.name, is_rule=True)
    label = snapshot.label_by_id.get(group_id)
    known = label or snapshot.group_by_id.get(group_id)
    return NamedGroup(group_id, known.name if known else group_id, is_label=label is not None)


def group_ids(snapshot: Snapshot) -> tuple[str, ...]:
    """Affinity groups, legacy labels that act as some, and placement rules: what a step can repair."""
    labels = (label.id for label in snapshot.affinity_labels if label.implicit)
    return (*snapshot.group_by_id, *labels, *snapshot.rule_by_id)


def named_vms(ids: Iterable[str], snapshot: Snapshot) -> tuple[Named, ...]:
    return tuple(named_vm(one, snapshot) for one in ids)


def named_hosts(ids: Iterable[str], snapshot: Snapshot) -> tuple[Named, ...]:
    return tuple(named_host(one, snapshot) for one in ids)


def named_groups(ids: Iterable[str], snapshot: Snapshot) -> tuple[NamedGroup, ...]:
    return tuple(named_group(one, snapshot) for one in ids)


# -- Makes records with ids into records of answers, in which names stand next to the ids.
#: Types of fields that say what an id is of. Any function may stand there that makes the field's value of
#: the one with ids, and the snapshot.
NamedVm = Annotated[Named, named_vm]
NamedHost = Annotated[Named, named_host]
NamedCluster = Annotated[Named, named_cluster]
GroupOrRule = Annotated[NamedGroup, named_group]

_Record = TypeVar("_Record", bound=Record)
_Reader = Callable[[Any, Snapshot], Any]


def names_of(named: Iterable[Named]) -> str:
    """The names of these, with commas between them."""
    return ", ".join(one.name for one in named)


def with_names(kind: type[_Record], source: object, snapshot: Snapshot, /, **others: Any) -> _Record:
    """A record of this kind: its fields are those of the source, or of these others, with names next to ids.

    Of a source that is a tuple, they are its items in their order. What is of a field's type already stays.
    """
    readers = _readers(kind)
    if isinstance(source, tuple):
        return kind(*(read(value, snapshot) for read, value in zip(readers.values(), source, strict=True)))
    return kind(
        **{
            name: read(others[name] if name in others else getattr(source, name), snapshot)
            for name, read in readers.items()
        }
    )


@cache
def _readers(kind: type[Record]) -> Mapping[str, _Reader]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: _reader(hints[name]) for name in kind.__struct_fields__}


def _reader(hint: Any) -> _Reader:
    """Makes the value of a field of this type."""
    inner = [one for one in get_args(hint) if one is not NoneType]
    if get_origin(hint) in (Union, UnionType) and len(inner) == 1:
        read = _reader(inner[0])
        return lambda value, snapshot: None if value is None else read(value, snapshot)
    if get_origin(hint) is Annotated and callable(inner[1]):
        return partial(_named, inner[0], inner[1])
    if get_origin(hint) is tuple and inner[-1] is Ellipsis:
        return partial(_several, _reader(inner[0]))
    if isinstance(hint, type) and issubclass(hint, Record):
        return partial(_nested, hint)
    return lambda value, _: value


def _named(kind: Any, name: _Reader, value: Any, snapshot: Snapshot) -> Any:
    return value if isinstance(kind, type) and isinstance(value, kind) else name(value, snapshot)


def _several(read: _Reader, values: Any, snapshot: Snapshot) -> tuple[Any, ...]:
    return tuple(read(one, snapshot) for one in (values.items() if isinstance(values, Mapping) else values))


def _nested(kind: type[Record], value: Any, snapshot: Snapshot) -> Record:
    return value if isinstance(value, kind) else with_names(kind, value, snapshot)


def counted(number: int, noun: str) -> str:
    """Give `1 VM`, `2 VMs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def be(number: int) -> str:
    """Give the verb that goes with it: `is` of one, else `are`."""
    return "is" if number == 1 else "are"
