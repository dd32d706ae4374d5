"""What goes wrong on demand: migrations that fail, hang or crawl, and answers that the API never gives."""

from __future__ import annotations

import msgspec


class MigrationFault(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to a migration that starts now."""

    #: Fails after its time; the VM stays where it was.
    fail: bool = False
    #: Never ends by itself; cancelling it works.
    hang: bool = False
    #: Takes so many times as long.
    slow: float = 1.0
    #: VDSM refuses it at once: HTTP 400.
    refuse: bool = False


class ApiFault(msgspec.Struct, frozen=True, kw_only=True):
    """What the REST face does instead of answering a request."""

    #: The HTTP status of the answer (500, 503 ...); None hangs up without one.
    status: int | None = None
    #: Wait so many real seconds first.
    delay_seconds: float = 0.0
    #: Only requests of this method, and whose path contains this; None and "" mean all.
    method: str | None = None
    path: str = ""


class Faults:
    """The faults to come. Each is used up by the first migration or request that it fits."""

    def __init__(self) -> None:
        self._migrations: list[tuple[str | None, MigrationFault]] = []
        self._requests: list[ApiFault] = []

    def next_migrations(self, fault: MigrationFault, *, count: int = 1, vm_id: str | None = None) -> None:
        """Let the next migrations (of this VM, if one is named) go wrong."""
        self._migrations.extend([(vm_id, fault)] * count)

    def next_requests(self, fault: ApiFault, *, count: int = 1) -> None:
        """Let the next requests that fit go wrong."""
        self._requests.extend([fault] * count)

    def clear(self) -> None:
        """Forget all faults that have not come yet."""
        self._migrations.clear()
        self._requests.clear()

    def take_migration(self, vm_id: str) -> MigrationFault:
        """Give the fault that a migration of this VM meets; a harmless one if none waits."""
        for index, (wanted, fault) in enumerate(self._migrations):
            if wanted in (None, vm_id):
                del self._migrations[index]
                return fault
        return MigrationFault()

    def take_request(self, method: str, path: str) -> ApiFault | None:
        """Give the fault that this request meets, if any."""
        for index, fault in enumerate(self._requests):
            if fault.method in (None, method) and fault.path in path:
                del self._requests[index]
                return fault
        return None
