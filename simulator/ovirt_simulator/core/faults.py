"""What goes wrong on demand: migrations that fail, hang, crawl or are refused, and upgrades of hosts."""

from __future__ import annotations

from typing import TypeVar

import msgspec


class MigrationFault(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to a migration that starts now."""

    #: Fails after its time; the VM stays where it was.
    fail: bool = False
    #: Never ends by itself; cancelling it works.
    hang: bool = False
    #: Takes this many times as long.
    slow: float = 1.0
    #: VDSM refuses it at once: HTTP 400.
    refuse: bool = False


class UpgradeFault(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to an upgrade of a host that is being installed now."""

    #: The installation fails; the host stays, and its status is install_failed.
    fail: bool = False
    #: The host does not come back from its restart until somebody lets it recover.
    stay_away: bool = False


Fault = TypeVar("Fault", MigrationFault, UpgradeFault)


class Faults:
    """The faults to come. Each is used up by the first migration or upgrade that it fits."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str | None, MigrationFault | UpgradeFault]] = []

    def next_migrations(self, fault: MigrationFault, *, count: int = 1, vm_id: str | None = None) -> None:
        """Let the next migrations (of this VM, if one is named) go wrong."""
        self._waiting.extend([(vm_id, fault)] * count)

    def next_upgrades(self, fault: UpgradeFault, *, count: int = 1, host_id: str | None = None) -> None:
        """Let the next upgrades (of this host, if one is named) go wrong."""
        self._waiting.extend([(host_id, fault)] * count)

    def clear(self) -> None:
        """Forget all faults that have not come yet."""
        self._waiting.clear()

    def take(self, kind: type[Fault], identity: str) -> Fault:
        """Give what a migration of this VM, or an upgrade of this host, meets; harmless if none waits."""
        for index, (wanted, fault) in enumerate(self._waiting):
            if wanted in (None, identity) and isinstance(fault, kind):
                del self._waiting[index]
                return fault
        return kind()
