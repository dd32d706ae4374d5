"""Finds in recorded plans what concerns a VM, a host, an affinity group or a legacy label, by name or id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec.structs import replace

from ovirt_placement.store.history import PlanRecord, RecordedMigration
from ovirt_placement.store.user_actions import UserAction

#: A step of a plan, or a rule that is not repaired, as the plan's document has it.
_Part = Mapping[str, Any]


class Subject(StrEnum):
    """What a name is the name of."""

    VM = "VM"
    HOST = "host"
    VM_OR_GROUP = "VM or affinity group"


class Wanted(NamedTuple):
    """What a history is asked about; everything, if the name is empty."""

    name: str = ""
    subject: Subject = Subject.VM_OR_GROUP


EVERYTHING = Wanted()


def about(record: PlanRecord, wanted: Wanted) -> bool:
    """Whether a plan moved, meant to move, or had to leave alone what is called so."""
    return bool(steps_about(record, wanted)) or any(_names(part, wanted) for part in remaining(record))


def steps_about(record: PlanRecord, wanted: Wanted) -> tuple[int, ...]:
    """Numbers of the steps, from 1, that move or repair what is called so, leave it, or lead there."""
    return tuple(
        number for number, step in enumerate(steps(record), 1) if not wanted.name or _names(step, wanted)
    )


def narrowed(record: PlanRecord, wanted: Wanted) -> PlanRecord:
    """A record without the steps, and what came of them, that do not concern what is called so."""
    if not wanted.name:
        return record
    numbers = steps_about(record, wanted)
    return replace(
        record,
        migrations=tuple(one for one in record.migrations if one.step in numbers),
        held=tuple(one for one in record.held if one.step in numbers),
    )


def migrations_about(
    migrations: Iterable[RecordedMigration], wanted: Wanted
) -> tuple[RecordedMigration, ...]:
    """Migrations of which no plan is known have ids alone."""
    return tuple(one for one in migrations if not wanted.name or wanted.name in _ids(one, wanted.subject))


def user_actions_about(
    actions: Iterable[UserAction], plans: Iterable[PlanRecord], name: str
) -> tuple[UserAction, ...]:
    """What people did with these plans, or with what is called so; all of it if the name is empty."""
    known = {plan.id for plan in plans}
    return tuple(
        one
        for one in actions
        if name in ("", one.subject, one.cluster, one.cluster_name) or one.plan in known
    )


def steps(record: PlanRecord) -> tuple[_Part, ...]:
    return tuple(record.document.get("steps", ()))


def remaining(record: PlanRecord) -> tuple[_Part, ...]:
    return tuple(record.document.get("remaining", ()))


def _ids(migration: RecordedMigration, subject: Subject) -> tuple[str | None, ...]:
    return (migration.source, migration.target) if subject is Subject.HOST else (migration.vm,)


def _names(part: _Part, wanted: Wanted) -> bool:
    named = _hosts(part) if wanted.subject is Subject.HOST else _vms_and_groups(part, wanted.subject)
    return any(wanted.name in (one["id"], one["name"]) for one in named)


def _vms_and_groups(part: _Part, subject: Subject) -> Iterator[Mapping[str, str]]:
    fields = ("vms",) if subject is Subject.VM else ("vms", "groups", "repairs")
    for field in fields:
        yield from part.get(field, ())


def _hosts(part: _Part) -> Iterator[Mapping[str, str]]:
    yield from (part[field] for field in ("to",) if field in part)
    yield from (vm["from"] for vm in part.get("vms", ()) if "from" in vm)
