"""What commands that change placement keys say of the change, to people and to programs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from ovirt_placement.answers.documents.keys import KeysChangeDocument, key_data
from ovirt_placement.answers.key_sentences import key_title, written, written_weight
from ovirt_placement.cli.question import show_json
from ovirt_placement.model import Snapshot
from ovirt_placement.store.keys import KeyChange

#: So much of a change is reported to a person.
_MOST_LINES = 20


def report(
    args: argparse.Namespace, snapshot: Snapshot, change: KeyChange, forgotten: Sequence[str] | None = None
) -> None:
    """Tell of a change; `forgotten` are the VMs whose frozen sets and sticky copies went, if any could."""
    if args.json:
        show_json(
            KeysChangeDocument(
                set=tuple(key_data(key, snapshot) for key in change.put),
                unset=tuple(key_data(key, snapshot) for key in change.remove),
                forgotten=tuple(forgotten or ()),
            )
        )
        return
    lines = [*_lines(change, snapshot), *(f"forgot VM {vm}" for vm in forgotten or ())]
    if len(lines) > _MOST_LINES:
        more = f"... and {len(lines) - _MOST_LINES} more: ovirt-placement keys list --all shows all keys"
        lines = [*lines[:_MOST_LINES], more]
    print("\n".join(lines) or "Nothing to change.")


def _lines(change: KeyChange, snapshot: Snapshot) -> Iterator[str]:
    for key in change.put:
        weight = written_weight(key)
        sticky = ", sticky" if key.sticky else ""
        told = f"{written(key.value)}{f' ({weight})' if weight else ''}{sticky}"
        yield f"set {key_title(key, snapshot)}: {told}"
    for key in change.remove:
        yield f"unset {key_title(key, snapshot)}"
