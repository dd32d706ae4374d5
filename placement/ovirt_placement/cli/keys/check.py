"""`ovirt-placement keys check`: what is wrong with the keys that are set."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.key_sentences import key_title, mistake_place, mistake_sentence
from ovirt_placement.cli.keys.state import read_keys
from ovirt_placement.cli.question import show, show_json
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model.key_resources import LISTED, gone_keys
from ovirt_placement.rules.placement_keys.mistakes import Mistake, find_mistakes

_GONE = "resource-gone"
_GONE_SENTENCE = "the engine has no such object any more; keys prune removes it"


def run(args: argparse.Namespace) -> int:
    state = read_keys(args)
    mistakes = find_mistakes(state.snapshot)
    gone = gone_keys((one.key for one in state.authors.values()), state.snapshot, LISTED)
    found = [_described(mistake, state.snapshot) for mistake in mistakes]
    found += [_described_gone(key, state.snapshot) for key in gone]
    if args.json:
        show_json(found)
    elif found:
        show([(one["where"], one["sentence"]) for one in found], ("where", "what is wrong"))
    else:
        print("No mistakes.")
    return int(bool(found))


def _described(mistake: Mistake, snapshot: Snapshot) -> dict[str, object]:
    return {
        "where": mistake_place(mistake, snapshot),
        "codes": mistake.codes,
        "sentence": mistake_sentence(mistake),
    }


def _described_gone(key: PlacementKey, snapshot: Snapshot) -> dict[str, object]:
    return {"where": key_title(key, snapshot), "codes": (_GONE,), "sentence": _GONE_SENTENCE}
