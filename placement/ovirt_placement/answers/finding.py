"""Finds what a word means: a VM, host, cluster or group by its id or name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import choices
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError


class _Named(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...


Item = TypeVar("Item", bound=_Named)


def find(word: str, wanted: str, items: Iterable[Item], snapshot: Snapshot | None = None) -> Item:
    """The VM, host, cluster or group that a word means: its id, or its name if no other has it too.

    Raises `UserError` with the nearest right name, or with the ids to choose from; the snapshot says where
    each of these is.
    """
    known = tuple(items)
    by_id = {item.id: item for item in known}
    if word in by_id:
        return by_id[word]
    found = [item for item in known if item.name == word]
    if len(found) > 1:
        raise UserError(f'{wanted} "{word}" is ambiguous: say {choices(found, snapshot)}')
    if not found:
        raise UserError(f'no {wanted} "{word}"{nearest(word, [item.name for item in known])}')
    return found[0]


def find_id(
    word: str | None, wanted: str, items: Iterable[Item], snapshot: Snapshot | None = None
) -> str | None:
    """The id of what a word means; None without a word. Raises what `find` raises."""
    return None if word is None else find(word, wanted, items, snapshot).id
