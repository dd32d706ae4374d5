"""What the store holds of migrations, and how it differs from what the engine did."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from tests.enforcer.safety.limits import Begun

_OPEN = {"prepared", "accepted", "unknown"}
_QUERY = "SELECT vm, target, correlation_id, state, error FROM intents"


class Record(NamedTuple):
    vm: str
    target: str
    correlation_id: str
    state: str
    error: str | None

    def is_of(self, begun: Begun) -> bool:
        """The VMs of a group that is moved at once have numbers at the end of the request's id."""
        asked = self.correlation_id == begun.request or self.correlation_id.startswith(f"{begun.request}-")
        return asked and (self.vm, self.target) == (begun.vm, begun.target)


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


def faults_of(store: Path, begun: Sequence[Begun]) -> Iterator[str]:
    """Compare what the engine did with what the store holds, either way."""
    found = records(store)
    for record in found:
        if record.state in _OPEN:
            yield f"open at the end: {record}"
        if record.state == "done" and not any(one.arrived and record.is_of(one) for one in begun):
            yield f"recorded, and never was: {record}"
    for one in begun:
        state = "done" if one.arrived else "failed"
        if not any(record.is_of(one) and record.state == state for record in found):
            yield f"no record says {state} of {one}: {found}"
