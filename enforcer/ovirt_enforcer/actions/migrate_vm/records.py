"""What the engine's events and jobs show of a migration, by the correlation id of its request."""

from __future__ import annotations

from collections.abc import Collection

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading import events, jobs
from ovirt_placement.store.intents import Intent


def began(connection: EngineConnection, intent: Intent) -> bool:
    """Whether the engine began it. Raises what `EngineConnection.get` raises, as do the others."""
    return any(event.code in events.STARTED for event in _events(connection, intent))


def is_asked(connection: EngineConnection, intent: Intent) -> bool:
    """Whether the engine has the request and still works on it: it may begin any moment."""
    return jobs.is_working(connection, _request_id(intent))


def refusal(connection: EngineConnection, intent: Intent) -> str | None:
    """Why it did not begin, in the engine's own words; None if there are none."""
    return _said(connection, intent, events.REFUSED)


def failure(connection: EngineConnection, intent: Intent) -> str | None:
    """Why it failed, in the engine's own words; None if there are none."""
    return _said(connection, intent, events.FAILED)


def _said(connection: EngineConnection, intent: Intent, codes: Collection[int]) -> str | None:
    said = [event.description for event in _events(connection, intent) if event.code in codes]
    return said[-1].strip().removesuffix(".") if said else None


def _events(connection: EngineConnection, intent: Intent) -> tuple[events.EngineEvent, ...]:
    return events.find_migration_events(connection, correlation_id=_request_id(intent), vm_id=intent.vm)


def _request_id(intent: Intent) -> str:
    """VMs that move at once have one request."""
    return intent.correlation_id.partition("-")[0]
