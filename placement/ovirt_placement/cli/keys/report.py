"""Prints what was changed of placement keys, for people and for programs."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.keys.change import KeysChangeDocument, key_change_lines
from ovirt_placement.cli.question import show_json

#: How much of a change is printed for a person.
_MOST_LINES = 20


def report(args: argparse.Namespace, answer: KeysChangeDocument) -> None:
    if args.json:
        show_json(answer)
        return
    shown = list(key_change_lines(answer))
    if len(shown) > _MOST_LINES:
        more = f"... and {len(shown) - _MOST_LINES} more: ovirt-placement keys list --all shows all keys"
        shown = [*shown[:_MOST_LINES], more]
    print("\n".join((*(shown or ["Nothing to change."]), *(f"note: {note}" for note in answer.notes))))
