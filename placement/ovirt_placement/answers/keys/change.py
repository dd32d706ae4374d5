"""What was changed of placement keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ovirt_placement.answers.document import ChangeDocument
from ovirt_placement.answers.keys.key import KeyRecord, key_record
from ovirt_placement.answers.keys.sentences import without_effect, written, written_weight
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model.key_resources import clusters_of
from ovirt_placement.store.keys import KeyChange, KeyPlace


class KeysChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="keys_change"):
    """What was set, and what was removed; `forgotten` are ids of VMs that are gone from the engine."""

    #: The keys at the places that are set or removed, of those that are not the same afterwards.
    before: tuple[KeyRecord, ...]
    after: tuple[KeyRecord, ...]
    set: tuple[KeyRecord, ...]
    unset: tuple[KeyRecord, ...]
    forgotten: tuple[str, ...]
    #: Why what was set counts for less, or for nothing, in sentences.
    notes: tuple[str, ...]


def keys_change(
    snapshot: Snapshot,
    standing: Iterable[PlacementKey],
    change: KeyChange,
    forgotten: Iterable[str] = (),
    *,
    dry_run: bool,
) -> KeysChangeDocument:
    """What was set and removed of the keys that stood before.

    `forgotten` are the VMs whose frozen sets and sticky copies went.
    """
    there = {KeyPlace.of(key): key_record(key, snapshot) for key in standing}
    gone = {KeyPlace.of(key) for key in change.remove}
    put = {KeyPlace.of(key): key_record(key, snapshot) for key in change.put}
    fresh = {place: record for place, record in put.items() if there.get(place) != record}
    touched = [place for place in there if place in fresh or (place in gone and place not in put)]
    forgotten = tuple(forgotten)
    concerned = (one for key in change.put for one in clusters_of(key.level, key.resource, snapshot))
    return KeysChangeDocument(
        changed=bool(touched or fresh or forgotten),
        dry_run=dry_run,
        before=tuple(there[place] for place in touched),
        after=tuple(fresh.values()),
        set=tuple(put.values()),
        unset=tuple(key_record(key, snapshot) for key in change.remove),
        forgotten=forgotten,
        notes=tuple(without_effect({one.id: one for one in concerned}.values())),
    )


def lines(answer: KeysChangeDocument) -> Iterator[str]:
    """In a line each what was set, removed and forgotten."""
    for key in answer.set:
        weight = written_weight(key.weight)
        sticky = ", sticky" if key.sticky else ""
        yield f"set {key.sentence}: {written(key.value)}{f' ({weight})' if weight else ''}{sticky}"
    yield from (f"unset {key.sentence}" for key in answer.unset)
    yield from (f"forgot VM {vm}" for vm in answer.forgotten)
    if answer.dry_run and answer.changed:
        yield "Nothing was written: this was a dry run."
