"""The placement keys that are set, by whom and when, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.keys.key import (
    KeyRecord,
    key_record,
    key_title,
    key_words,
    mistake_place,
    mistake_sentence,
    unmatched_keys,
    without_effect,
    written,
    written_weight,
)
from ovirt_placement.answers.naming import with_names
from ovirt_placement.answers.question import (
    AuthoredState,
    Columns,
    Parameter,
    Reads,
    Route,
    Table,
    question,
    table,
)
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model.key_resources import LISTED, clusters_of, find_place, gone_keys
from ovirt_placement.model.names import Named, named_host, named_vm
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.hierarchy import MistakenKey
from ovirt_placement.rules.placement_keys.mistakes import (
    MissingNodeKeys,
    Mistake,
    UnreadableProperty,
    find_mistakes,
)
from ovirt_placement.store import keys as store
from ovirt_placement.store.keys import KeyPlace

# -- What is wrong with the placement keys that are set.
_GONE = "resource-gone"
_GONE_SENTENCE = "the engine has no such object any more; keys prune removes it"


class KeyMistake(Record, frozen=True, omit_defaults=False, kw_only=True):
    """Something that is wrong; which of key, host and VM are not null depends on the codes."""

    codes: tuple[str, ...]
    where: str
    sentence: str
    key: KeyRecord | None = None
    host: Named | None = None
    vm: Named | None = None


class KeysCheckDocument(Document, frozen=True, kw_only=True, tag="keys_check"):
    """What is wrong with the keys that are set."""

    mistakes: tuple[KeyMistake, ...]
    #: Why keys without a mistake count for less, or for nothing, in sentences.
    notes: tuple[str, ...]


@question(
    "keys check",
    "keys that are ignored, and why",
    """\
List keys that are ignored, and why: mistakes, hosts that lack a key of their cluster, objects that are gone.
The exit status is 1 if there is any.
""",
    examples="  ovirt-placement keys check --keys keys.yaml      # before they are imported\n",
    text=lambda answer, _: _check_text(answer),
    status=lambda answer, _: int(bool(answer.mistakes)),
    reads=Reads.KEYS,
)
def keys_check(state: AuthoredState) -> KeysCheckDocument:
    """The mistakes of a state, and of the keys that are stored those whose objects are gone."""
    snapshot, stored = state.snapshot, (one.key for one in state.authors.values())
    mistakes = (_mistake(one, snapshot) for one in find_mistakes(snapshot))
    gone = (_gone(key, snapshot) for key in gone_keys(stored, snapshot, LISTED))
    return KeysCheckDocument(mistakes=(*mistakes, *gone), notes=tuple(_notes(snapshot)))


def _mistake(mistake: Mistake, snapshot: Snapshot) -> KeyMistake:
    return KeyMistake(
        codes=tuple(mistake.codes),
        where=mistake_place(mistake, snapshot),
        sentence=mistake_sentence(mistake),
        key=key_record(mistake.key, snapshot) if isinstance(mistake, MistakenKey) else None,
        host=named_host(mistake.host, snapshot) if isinstance(mistake, MissingNodeKeys) else None,
        vm=named_vm(mistake.vm, snapshot) if isinstance(mistake, UnreadableProperty) else None,
    )


def _gone(key: PlacementKey, snapshot: Snapshot) -> KeyMistake:
    return KeyMistake(
        codes=(_GONE,), where=key_title(key, snapshot), sentence=_GONE_SENTENCE, key=key_record(key, snapshot)
    )


def _notes(snapshot: Snapshot) -> Iterator[str]:
    """Clusters whose policies do not heed the keys there, and keys of VMs that no host has."""
    places = dict.fromkeys((key.level, key.resource) for key in snapshot.placement_keys)
    having = {one.id for place in places for one in clusters_of(*place, snapshot)}
    yield from without_effect(cluster for cluster in snapshot.clusters if cluster.id in having)
    yield from (one.sentence for one in unmatched_keys(snapshot))


# -- in words
def _check_text(answer: KeysCheckDocument) -> Iterator[str | Table]:
    if answer.mistakes:
        yield Table([(one.where, one.sentence) for one in answer.mistakes], ("where", "what is wrong"))
    yield from answer.notes or (() if answer.mistakes else ("No mistakes.",))


# -- The placement keys that are set, by whom and when.
class SetKey(KeyRecord, frozen=True, omit_defaults=False, kw_only=True):
    """A key, who set it and when (ISO 8601, in UTC); null where that is not known."""

    set_by: str | None
    set_at: str | None


class KeysListDocument(Document, frozen=True, kw_only=True, tag="keys_list"):
    """The keys that are set."""

    keys: tuple[SetKey, ...]


@question(
    "keys list",
    "the keys that are set",
    """\
List placement keys: the class (system: the operator's; be: a billing entity's; customer), what each is set
on, who set it and when.
""",
    examples="  ovirt-placement keys list --on cluster blue\n",
    text=lambda answer, _: [keys_table(answer) if answer.keys else "No keys."],
    reads=Reads.KEYS,
    routes=(Route("/keys", "the placement keys that are set"),),
)
def keys_list(
    state: AuthoredState,
    *,
    name: Annotated[str | None, Parameter(help="only keys of this name", metavar="NAME")] = None,
    on: Annotated[
        Sequence[str] | None,
        Parameter(
            help="only keys of this level, or of this object",
            metavar=("LEVEL", "RESOURCE"),
            argument={"nargs": "+"},
        ),
    ] = None,
) -> KeysListDocument:
    """The keys of a store, also of objects that are gone; without any, those of the state.

    Of them, those of this name, and on this level and object. Raises `UserError` if these are not known.
    """
    snapshot, authors = state
    known = [one.key for one in authors.values()] or snapshot.placement_keys
    wanted = None if on is None else find_place(on, known, snapshot)
    keys = [
        _set_key(key, authors.get(KeyPlace.of_key(key)), snapshot)
        for key in known
        if name in (None, key.name)
        and (wanted is None or (key.level == wanted.level and wanted.resource in (None, key.resource)))
    ]
    keys.sort(key=lambda one: (one.level, one.name, one.place, one.key_class))
    return KeysListDocument(keys=tuple(keys))


def _set_key(key: PlacementKey, author: store.SetKey | None, snapshot: Snapshot) -> SetKey:
    at = None if author is None else datetime.fromtimestamp(author.set_at, UTC).isoformat(timespec="seconds")
    by = author and author.set_by
    return with_names(SetKey, key, snapshot, **key_words(key, snapshot), set_by=by, set_at=at)


# -- in words
_COLUMNS: Columns = {
    "on": lambda one: one.place,
    "class": lambda one: one.key_class,
    "name": lambda one: one.name,
    "value": lambda one: written(one.value),
    "weight": lambda one: written_weight(one.weight),
    "kind": lambda one: one.kind,
}
_AUTHORS: Columns = {"set by": lambda one: one.set_by, "set at": lambda one: one.set_at}


def keys_table(answer: KeysListDocument) -> Table:
    """Who set the keys stands there where it is known."""
    authored = any(one.set_at is not None for one in answer.keys)
    return table(answer.keys, {**_COLUMNS, **(_AUTHORS if authored else {})})
