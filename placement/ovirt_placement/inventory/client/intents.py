"""Lays the open intents of the store over a snapshot: what is decided and not yet to be seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ovirt_placement.lookups.index import with_more_pending
from ovirt_placement.model import Pending, Snapshot, Vm

if TYPE_CHECKING:
    from ovirt_placement.store.intents import Intent, Store


def with_intents(snapshot: Snapshot, intents: Iterable[Intent]) -> Snapshot:
    """Return the snapshot with the intents as `pending`, but for those that the engine shows by now."""
    shown = {(entry.vm, entry.host) for entry in snapshot.pending}
    added = tuple(
        Pending(vm=vm.id, host=intent.target, memory_mb=intent.memory_mb or vm.memory_mb)
        for intent in intents
        if (vm := snapshot.vm_by_id.get(intent.vm)) is not None
        and intent.target in snapshot.host_by_id
        and (vm.id, intent.target) not in shown
        and _expected(intent, vm)
    )
    return with_more_pending(snapshot, added, like=snapshot) if added else snapshot


def _expected(intent: Intent, vm: Vm) -> bool:
    """Whether the VM is still to come: it has neither arrived, nor stayed where it was for too long."""
    if vm.status == "migrating":
        return True
    return intent.fresh and vm.host != intent.target


class IntentReader:
    """Reads the open intents of an engine in a store."""

    def __init__(self, url: str, engine: str, patience_seconds: float) -> None:
        self._url = url
        self._engine = engine
        self._patience_seconds = patience_seconds
        self._store: Store | None = None

    def close(self) -> None:
        """Close the store; another reading opens it again."""
        if self._store is not None:
            self._store.close()

    def __call__(self, known: tuple[Intent, ...]) -> tuple[Intent, ...]:
        """Return what is open now, whatever was known; nothing before there are tables.

        Raises `UserError` if the store is away.
        """
        from ovirt_placement.store.database import StoreUnmade
        from ovirt_placement.store.intents import Store

        if self._store is None:
            self._store = Store(
                self._url, engine=self._engine, patience_seconds=self._patience_seconds, create=False
            )
        try:
            return self._store.blocking_intents()
        except StoreUnmade:
            return ()
