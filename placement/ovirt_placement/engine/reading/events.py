"""Reads the engine's events: what happens, one after another, and how a migration went that we began."""

from __future__ import annotations

from collections.abc import Callable, Container
from datetime import datetime
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from ovirt_placement.engine.connection.client import EngineConnection, EngineFault
from ovirt_placement.engine.event_codes import EventCode
from ovirt_placement.engine.parsing import xml
from ovirt_placement.engine.reading.requests import whole_answers
from ovirt_service.legible import unbroken

STARTED = frozenset({EventCode.VM_MIGRATION_START, EventCode.VM_MIGRATION_START_SYSTEM_INITIATED})
DONE = frozenset({EventCode.VM_MIGRATION_DONE})
FAILED = frozenset(
    {
        EventCode.VM_MIGRATION_ABORT,
        EventCode.VM_MIGRATION_FAILED,
        EventCode.VM_MIGRATION_TO_SERVER_FAILED,
        EventCode.VM_MIGRATION_FAILED_DURING_MOVE_TO_MAINTENANCE,
        EventCode.VM_MIGRATION_FAILED_DURING_MOVE_TO_MAINTENANCE_NO_DESTINATION_VDS,
    }
)
#: Of a migration that did not begin: what the engine would not have, or found no host for.
REFUSED = FAILED | {EventCode.VM_MIGRATION_NO_VDS_TO_MIGRATE_TO}
CANCELLED = frozenset({EventCode.VM_CANCEL_MIGRATION})
#: A VM started on a host, by a user's command or by the engine's own.
VM_STARTED = frozenset(
    {
        EventCode.USER_RUN_VM,
        EventCode.USER_RUN_VM_ON_NON_DEFAULT_VDS,
        EventCode.USER_STARTED_VM,
        EventCode.VDS_INITIATED_RUN_VM,
    }
)
#: A VM that did not start, or could not be restarted.
START_FAILED = frozenset(
    {
        EventCode.USER_FAILED_RUN_VM,
        EventCode.USER_INITIATED_RUN_VM_FAILED,
        EventCode.VDS_INITIATED_RUN_VM_FAILED,
        EventCode.RUN_VM_FAILED,
    }
)
MIGRATION_CODES = (
    STARTED
    | DONE
    | FAILED
    | CANCELLED
    | {
        EventCode.VM_MIGRATION_TRYING_RERUN,
        EventCode.VM_CANCEL_MIGRATION_FAILED,
        EventCode.VM_MIGRATION_NO_VDS_TO_MIGRATE_TO,
    }
)

#: How many of the newest events are looked through where the engine's search finds nothing.
_NEWEST = 1000


class EngineEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event; `vm`, `host` and `cluster` are ids and may be absent."""

    id: int
    code: int
    severity: str
    #: Seconds since the epoch, by the engine's clock.
    time: float
    description: str
    correlation_id: str | None
    vm: str | None
    host: str | None
    cluster: str | None


class LatestEvents(NamedTuple):
    """Events, oldest first, and how far back they were looked for."""

    events: tuple[EngineEvent, ...]
    #: Seconds since the epoch; what is older was cut off. None if nothing was.
    since: float | None


def read_events(
    connection: EngineConnection, *, after: int = 0, at_most: int, but: Container[int] = ()
) -> tuple[EngineEvent, ...]:
    """Read the newest events with higher ids than this, oldest first; those with some ids are left out.

    Raises what `EngineConnection.get` raises; an engine without events has none.
    """
    query: dict[str, int] = {"from": after} if after > 0 else {}
    try:
        found = _read(connection, but, **query, max=at_most)
    except EngineFault as fault:
        if fault.code == HTTPStatus.NOT_FOUND and fault.fault:
            return ()
        raise
    return tuple(sorted(found, key=lambda event: event.id))


def find_migration_events(
    connection: EngineConnection, *, correlation_id: str | None = None, vm_id: str | None = None
) -> tuple[EngineEvent, ...]:
    """Find the migration events of a correlation id or a VM (or of both), oldest first.

    The engine answers a search that it cannot parse with an empty list, so nothing found is asked again
    of the newest thousand events. Raises what `EngineConnection.get` raises.
    """
    terms = {"correlation_id": correlation_id, "_event_vm_id": vm_id}
    search = " and ".join(f"{name}={value}" for name, value in terms.items() if value is not None)
    if not search:
        raise ValueError("a correlation id or a VM must be given")

    def fits(event: EngineEvent) -> bool:
        return (
            event.code in MIGRATION_CODES
            and correlation_id in (None, event.correlation_id)
            and vm_id in (None, event.vm)
        )

    return _find(connection, search, fits).events


def find_start_events(connection: EngineConnection) -> tuple[EngineEvent, ...]:
    """Find the latest thousand events of VMs that started on a host, oldest first.

    As `find_migration_events`, where the engine's search finds nothing.
    """
    return _find_kinds(connection, VM_STARTED).events


def find_refusals(connection: EngineConnection) -> LatestEvents:
    """Find the latest thousand events of VMs that did not start, or whose migration did not begin.

    As `find_migration_events`, where the engine's search finds nothing.
    """
    return _find_kinds(connection, START_FAILED | REFUSED)


def _find_kinds(connection: EngineConnection, codes: Container[int]) -> LatestEvents:
    search = " or ".join(f"type={code}" for code in sorted(EventCode) if code in codes)
    return _find(connection, search, lambda event: event.code in codes)


def _find(connection: EngineConnection, search: str, fits: Callable[[EngineEvent], bool]) -> LatestEvents:
    read = _read(connection, search=search, max=_NEWEST)
    if not any(map(fits, read)):
        read = _read(connection, max=_NEWEST)
    found = sorted(filter(fits, read), key=lambda event: event.id)
    return LatestEvents(tuple(found), min(event.time for event in read) if len(read) >= _NEWEST else None)


def _read(
    connection: EngineConnection, but: Container[int] = (), **query: str | int
) -> tuple[EngineEvent, ...]:
    with whole_answers(connection):
        content = connection.get("/events", **query)
        found = ((_number(one.get("id")), one) for one in xml.elements(content, "event"))
        return tuple(_event(number, one) for number, one in found if number not in but)


def _event(number: int, element: xml.Element) -> EngineEvent:
    return EngineEvent(
        id=number,
        code=_number(element.findtext("code")),
        severity=element.findtext("severity", "normal"),
        time=_moment(element.findtext("time", "1970-01-01T00:00:00Z")),
        description=unbroken(element.findtext("description", "")),
        correlation_id=element.findtext("correlation_id"),
        vm=_id_of(element, "vm"),
        host=_id_of(element, "host"),
        cluster=_id_of(element, "cluster"),
    )


def _number(text: str | None) -> int:
    """The engine counts in 64 bits."""
    found = int(text or 0)
    if abs(found) >= 2**63:
        raise xml.Unexpected(f"an event with a number of {len(text or '')} digits")
    return found


def _moment(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise xml.Unexpected(f"an event of {text!r}") from None


def _id_of(element: xml.Element, name: str) -> str | None:
    child = element.find(name)
    return None if child is None else child.get("id")
