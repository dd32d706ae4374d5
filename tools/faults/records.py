"""The fourth invariant: the store has the record of each migration that the engine began, and none is open.

The store's file is read by itself, without the code that wrote it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from tools.faults.recorder import Begun

_OPEN = {"prepared", "accepted", "unknown"}
_QUERY = "SELECT vm, target, correlation_id, state, error FROM intents"


class Record(NamedTuple):
    vm: str
    target: str
    correlation_id: str
    state: str
    error: str | None


def records(store: Path) -> list[Record]:
    """All records; none while there is no store, or no table in it."""
    with (
        suppress(sqlite3.OperationalError),
        closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as file,
    ):
        return [Record(*row) for row in file.execute(_QUERY)]
    return []


def settled(store: Path) -> bool:
    """Whether the end of every migration is recorded."""
    return not any(record.state in _OPEN for record in records(store))


def faults(store: Path, begun: Iterable[Begun]) -> Iterator[str]:
    """Compare what the engine did with what the store holds, either way."""
    found = records(store)
    for record in found:
        if record.state in _OPEN:
            yield f"open at the end: {record}"
    known = list(begun)
    for one in known:
        state = "done" if one.arrived else "failed"
        if not any(_is_of(record, one) and record.state == state for record in found):
            yield f"no record says {state} of {one}: {found}"
    for record in found:
        if record.state == "done" and not any(one.arrived and _is_of(record, one) for one in known):
            yield f"recorded, and never was: {record}"


def _is_of(record: Record, begun: Begun) -> bool:
    """The VMs of a group that is moved at once have numbers at the end of the request's id."""
    asked = record.correlation_id == begun.request or record.correlation_id.startswith(f"{begun.request}-")
    return asked and (record.vm, record.target) == (begun.vm, begun.target)
