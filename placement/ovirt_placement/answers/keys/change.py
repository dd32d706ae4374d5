"""What was changed of placement keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.keys.key import KeyRecord, key_record
from ovirt_placement.answers.keys.sentences import written, written_weight
from ovirt_placement.model import Snapshot
from ovirt_placement.store.keys import KeyChange


class KeysChangeDocument(Document, frozen=True, kw_only=True, tag="keys_change"):
    """What was set, and what was removed; `forgotten` are ids of VMs that are gone from the engine."""

    set: tuple[KeyRecord, ...]
    unset: tuple[KeyRecord, ...]
    forgotten: tuple[str, ...]


def keys_change(snapshot: Snapshot, change: KeyChange, forgotten: Iterable[str] = ()) -> KeysChangeDocument:
    """What was set and removed; `forgotten` are the VMs whose frozen sets and sticky copies went."""
    return KeysChangeDocument(
        set=tuple(key_record(key, snapshot) for key in change.put),
        unset=tuple(key_record(key, snapshot) for key in change.remove),
        forgotten=tuple(forgotten),
    )


def lines(answer: KeysChangeDocument) -> Iterator[str]:
    """In a line each what was set, removed and forgotten."""
    for key in answer.set:
        weight = written_weight(key.weight)
        sticky = ", sticky" if key.sticky else ""
        yield f"set {key.sentence}: {written(key.value)}{f' ({weight})' if weight else ''}{sticky}"
    yield from (f"unset {key.sentence}" for key in answer.unset)
    yield from (f"forgot VM {vm}" for vm in answer.forgotten)
