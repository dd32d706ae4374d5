"""Says who moved a VM, and when: the engine's events show which user it was, or why the engine did it."""

from __future__ import annotations

from collections.abc import Collection

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading import events
from ovirt_placement.store.intents import Intent


class Origins:
    """Who else migrates VMs, by the engine's events. Methods raise what `EngineConnection.get` raises."""

    def __init__(self, connection: EngineConnection) -> None:
        self._connection = connection
        #: What `undone_after` found, by intent and the VM's host since.
        self._known: dict[tuple[int, str | None], float] = {}

    def who_moved(self, vm: str, ours: Collection[str]) -> str:
        """The engine's sentence about the last migration of a VM that was none of ours, by correlation id."""
        begun = [event for event in self._begun(vm) if (event.correlation_id or "") not in ours]
        return begun[-1].description.strip() if begun else "the engine's events do not show by whom"

    def undone_after(self, intent: Intent, host: str | None) -> float:
        """How many seconds after a migration of ours somebody else last moved its VM, which is on `host` now.

        0 where events do not show it. Both moments are those of the engine's clock, which is asked once.
        """
        if (intent.id, host) not in self._known:
            self._known[intent.id, host] = self._undone_after(intent)
        return self._known[intent.id, host]

    def _undone_after(self, intent: Intent) -> float:
        begun = self._begun(intent.vm)
        own = intent.correlation_id.partition("-")[0]
        ours = [event for event in begun if event.correlation_id == own]
        others = [event for event in begun if event.correlation_id != own]
        if not ours or not others or others[-1].id < ours[-1].id:
            return 0.0
        took = max(0.0, intent.updated - intent.created)
        return max(0.0, others[-1].time - ours[-1].time - took)

    def _begun(self, vm: str) -> list[events.EngineEvent]:
        found = events.find_migration_events(self._connection, vm_id=vm)
        return [event for event in found if event.code in events.STARTED]
