"""The placement keys that are set, by whom and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.keys.key import KeyRecord, key_fields
from ovirt_placement.answers.keys.sentences import written, written_weight
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model.key_resources import find_place
from ovirt_placement.store import keys as store
from ovirt_placement.store.keys import KeyPlace

_HEADERS = ("on", "class", "name", "value", "weight", "kind")
_AUTHORS = ("set by", "set at")


class SetKey(KeyRecord, frozen=True, omit_defaults=False, kw_only=True):
    """A key, who set it and when (ISO 8601, in UTC); null where that is not known."""

    set_by: str | None
    set_at: str | None


class KeysListDocument(Document, frozen=True, kw_only=True, tag="keys_list"):
    """The keys that are set."""

    keys: tuple[SetKey, ...]


def keys_list(
    snapshot: Snapshot,
    authors: Mapping[KeyPlace, store.SetKey],
    *,
    name: str | None = None,
    on: Sequence[str] | None = None,
) -> KeysListDocument:
    """The keys of a store, also of objects that are gone; without any, those of the state.

    Of them, those of this name, and on this level and object. Raises `UserError` if these are not known.
    """
    known = [one.key for one in authors.values()] or snapshot.placement_keys
    wanted = None if on is None else find_place(on, known, snapshot)
    keys = [
        _set_key(key, authors.get(KeyPlace.of(key)), snapshot)
        for key in known
        if name in (None, key.name)
        and (wanted is None or (key.level == wanted.level and wanted.resource in (None, key.resource)))
    ]
    keys.sort(key=lambda one: (one.level, one.name, one.place, one.key_class))
    return KeysListDocument(keys=tuple(keys))


def _set_key(key: PlacementKey, author: store.SetKey | None, snapshot: Snapshot) -> SetKey:
    if author is None:
        return SetKey(**key_fields(key, snapshot), set_by=None, set_at=None)
    at = datetime.fromtimestamp(author.set_at, UTC).isoformat(timespec="seconds")
    return SetKey(**key_fields(key, snapshot), set_by=author.set_by, set_at=at)


# -- in words


def headers(answer: KeysListDocument) -> tuple[str, ...]:
    """Who set the keys stands there where it is known."""
    return (*_HEADERS, *_AUTHORS) if _authored(answer) else _HEADERS


def rows(answer: KeysListDocument) -> list[tuple[str | None, ...]]:
    """What each key is set on, whose it is, its name, value and weight."""
    authored = _authored(answer)
    return [
        (
            one.place,
            one.key_class,
            one.name,
            written(one.value),
            written_weight(one.weight),
            one.kind,
            *((one.set_by, one.set_at) if authored else ()),
        )
        for one in answer.keys
    ]


def _authored(answer: KeysListDocument) -> bool:
    return any(one.set_at is not None for one in answer.keys)
