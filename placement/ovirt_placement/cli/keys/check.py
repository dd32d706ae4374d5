"""`ovirt-placement keys check`: what is wrong with the keys that are set."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.documents.keys import KeyMistake, KeysCheckDocument, key_data
from ovirt_placement.answers.key_sentences import key_title, mistake_place, mistake_sentence
from ovirt_placement.cli.keys.state import read_keys
from ovirt_placement.cli.question import show, show_answer
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model.key_resources import LISTED, gone_keys
from ovirt_placement.model.names import named_host, named_vm
from ovirt_placement.rules.placement_keys.compile import MistakenKey
from ovirt_placement.rules.placement_keys.mistakes import (
    MissingNodeKeys,
    Mistake,
    UnreadableProperty,
    find_mistakes,
)

_GONE = "resource-gone"
_GONE_SENTENCE = "the engine has no such object any more; keys prune removes it"


def run(args: argparse.Namespace) -> int:
    state = read_keys(args)
    gone = gone_keys((one.key for one in state.authors.values()), state.snapshot, LISTED)
    found = (
        *(_mistake(mistake, state.snapshot) for mistake in find_mistakes(state.snapshot)),
        *(_gone(key, state.snapshot) for key in gone),
    )
    if args.json:
        show_answer(args, KeysCheckDocument(mistakes=found))
    elif found:
        show([(one.where, one.sentence) for one in found], ("where", "what is wrong"), whole=args.all)
    else:
        print("No mistakes.")
    return int(bool(found))


def _mistake(mistake: Mistake, snapshot: Snapshot) -> KeyMistake:
    return KeyMistake(
        codes=tuple(mistake.codes),
        where=mistake_place(mistake, snapshot),
        sentence=mistake_sentence(mistake),
        key=key_data(mistake.key, snapshot) if isinstance(mistake, MistakenKey) else None,
        host=named_host(mistake.host, snapshot) if isinstance(mistake, MissingNodeKeys) else None,
        vm=named_vm(mistake.vm, snapshot) if isinstance(mistake, UnreadableProperty) else None,
    )


def _gone(key: PlacementKey, snapshot: Snapshot) -> KeyMistake:
    return KeyMistake(
        codes=(_GONE,), where=key_title(key, snapshot), sentence=_GONE_SENTENCE, key=key_data(key, snapshot)
    )
