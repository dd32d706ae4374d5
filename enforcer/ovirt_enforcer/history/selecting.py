"""Finds in recorded plans what concerns a VM, an affinity group or a legacy label, by name or id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from ovirt_placement.store.history import PlanRecord, RecordedMigration

#: A step of a plan, or a rule that is not repaired, as the plan's document has it.
_Part = Mapping[str, Any]


def about(record: PlanRecord, name: str) -> bool:
    """Whether a plan moved, meant to move, or had to leave alone what is called so."""
    return bool(steps_about(record, name)) or any(_names(part, name) for part in remaining(record))


def steps_about(record: PlanRecord, name: str) -> tuple[int, ...]:
    """Numbers of the steps, from 1, that move or repair what is called so; all steps if the name is empty."""
    return tuple(number for number, step in enumerate(steps(record), 1) if not name or _names(step, name))


def narrowed(record: PlanRecord, name: str) -> PlanRecord:
    """A record without the steps, and what came of them, that do not concern what is called so."""
    if not name:
        return record
    numbers = steps_about(record, name)
    return replace(
        record,
        migrations=tuple(one for one in record.migrations if one.step in numbers),
        held=tuple(one for one in record.held if one.step in numbers),
    )


def migrations_about(migrations: Iterable[RecordedMigration], name: str) -> tuple[RecordedMigration, ...]:
    """Migrations of which no plan is known have ids alone."""
    return tuple(one for one in migrations if name in ("", one.vm))


def steps(record: PlanRecord) -> tuple[_Part, ...]:
    return tuple(record.document.get("steps", ()))


def remaining(record: PlanRecord) -> tuple[_Part, ...]:
    return tuple(record.document.get("remaining", ()))


def _names(part: _Part, name: str) -> bool:
    return any(name in (named["id"], named["name"]) for named in _named(part))


def _named(part: _Part) -> Iterator[Mapping[str, str]]:
    for field in ("vms", "groups", "repairs"):
        yield from part.get(field, ())
