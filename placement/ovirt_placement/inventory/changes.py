"""What a version of the state has that an earlier one has not: what a reader gets who knows that one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter, is_
from typing import Any

import msgspec
from msgspec.structs import fields, replace

from ovirt_placement.model import Snapshot

#: The long lists of a snapshot, of which the records that differ travel alone, and what a record is known by.
_LISTS: Mapping[str, Callable[[Any], str]] = {
    **dict.fromkeys(("hosts", "vms", "affinity_groups", "affinity_labels"), attrgetter("id")),
    "frozen_keys": attrgetter("vm"),
}
#: Records that are encoded at a time: other threads decide meanwhile.
_PART = 500

_FIELDS = Snapshot.__struct_fields__
_decoders = {field.name: msgspec.msgpack.Decoder(field.type) for field in fields(Snapshot)}
_encode = msgspec.msgpack.encode

#: What is known before anything is.
EMPTY = Snapshot(clusters=(), hosts=(), vms=(), affinity_groups=(), affinity_labels=())


class Changes(msgspec.Struct, frozen=True):
    """The fields of a snapshot that differ."""

    #: What they hold, in parts; of a long list, the records that are new or differ.
    content: dict[str, list[msgspec.Raw]] = {}
    #: Of a long list with other records, or in another order: by what these are known, in their order.
    orders: dict[str, list[str]] = {}


def find_changes(before: Snapshot, now: Snapshot) -> Changes:
    """What there is now; what is as it was before is the same object."""
    content: dict[str, list[msgspec.Raw]] = {}
    orders: dict[str, list[str]] = {}
    for field in _FIELDS:
        old, new = getattr(before, field), getattr(now, field)
        if old is new:
            continue
        if (key := _LISTS.get(field)) is None:
            content[field] = [msgspec.Raw(_encode(new))]
            continue
        known = set(map(id, old))
        content[field] = list(_parts([one for one in new if id(one) not in known]))
        order = list(map(key, new))
        if order != list(map(key, old)):
            orders[field] = order
    return Changes(content, orders)


def _parts(records: list[Any]) -> Iterator[msgspec.Raw]:
    for at in range(0, len(records), _PART):
        yield msgspec.Raw(_encode(records[at : at + _PART]))


def with_changes(before: Snapshot, changes: Changes) -> Snapshot:
    """The snapshot as it is now. Raises `ValueError` if these are no changes of it."""
    values: dict[str, Any] = {}
    try:
        for field, parts in changes.content.items():
            found = [_decoders[field].decode(part) for part in parts]
            if (key := _LISTS.get(field)) is None:
                (values[field],) = found
                continue
            records = {key(one): one for one in getattr(before, field)}
            records.update((key(one), one) for part in found for one in part)
            values[field] = tuple([records[name] for name in changes.orders.get(field, records)])
    except KeyError as error:
        raise ValueError(f"there is no {error}") from None
    return with_known(before, replace(before, **values))


def with_known(before: Snapshot, now: Snapshot) -> Snapshot:
    """The snapshot with the same objects for what is as it was: what was looked up in them holds."""
    values: dict[str, Any] = {}
    for field in _FIELDS:
        old, new = getattr(before, field), getattr(now, field)
        if (key := _LISTS.get(field)) is not None and old is not new:
            known = {key(one): one for one in old}
            new = tuple([same if (same := known.get(key(one))) == one else one for one in new])
            values[field] = old if len(old) == len(new) and all(map(is_, old, new)) else new
        elif old == new:
            values[field] = old
    return replace(now, **values)
