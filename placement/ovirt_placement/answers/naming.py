"""Makes records with ids into records of answers, in which names stand next to the ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import (
    Named,
    NamedGroup,
    named_cluster,
    named_group,
    named_host,
    named_vm,
)
from ovirt_placement.model.record import Record

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
