"""Says who moved a VM: the engine's events tell which user it was, or why the engine did it by itself."""

from __future__ import annotations

from collections.abc import Collection

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading import events


def who_moved(connection: EngineConnection, vm: str, ours: Collection[str]) -> str:
    """The engine's sentence about the last migration of a VM that was none of ours, by correlation id.

    Raises what `EngineConnection.get` raises.
    """
    begun = [
        event
        for event in events.find_migration_events(connection, vm_id=vm)
        if event.code in events.STARTED and (event.correlation_id or "") not in ours
    ]
    return begun[-1].description.strip() if begun else "the engine's events do not tell by whom"
