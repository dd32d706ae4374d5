"""What is wrong with the placement keys that are set."""

from __future__ import annotations

from collections.abc import Iterable

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.keys.key import KeyRecord, key_record
from ovirt_placement.answers.keys.sentences import key_title, mistake_place, mistake_sentence
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model.key_resources import LISTED, gone_keys
from ovirt_placement.model.names import Named, named_host, named_vm
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.compile import MistakenKey
from ovirt_placement.rules.placement_keys.mistakes import (
    MissingNodeKeys,
    Mistake,
    UnreadableProperty,
    find_mistakes,
)

HEADERS = ("where", "what is wrong")

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


def keys_check(snapshot: Snapshot, stored: Iterable[PlacementKey] = ()) -> KeysCheckDocument:
    """The mistakes of a state, and of the `stored` keys those whose objects are gone."""
    mistakes = (_mistake(one, snapshot) for one in find_mistakes(snapshot))
    gone = (_gone(key, snapshot) for key in gone_keys(stored, snapshot, LISTED))
    return KeysCheckDocument(mistakes=(*mistakes, *gone))


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


# -- in words


def rows(answer: KeysCheckDocument) -> list[tuple[str, ...]]:
    """Where something is wrong, and what."""
    return [(one.where, one.sentence) for one in answer.mistakes]
