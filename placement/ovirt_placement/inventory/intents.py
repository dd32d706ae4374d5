"""Lays the open intents of the store over a snapshot: what is decided and not yet to be seen."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ovirt_placement.errors import UserError
from ovirt_placement.model import Pending, Snapshot, Vm

if TYPE_CHECKING:
    from ovirt_placement.store import Intent, Store

#: What a store may cost an answer to the engine, whatever state it is in.
PATIENCE_SECONDS = 0.05

_log = logging.getLogger(__name__)


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
    return replace(snapshot, pending=snapshot.pending + added) if added else snapshot


def _expected(intent: Intent, vm: Vm) -> bool:
    """Whether the VM is still to come: it has neither arrived, nor stayed where it was for too long."""
    if vm.status == "migrating":
        return True
    return intent.fresh and vm.host != intent.target


class IntentReader:
    """Reads the blocking intents of a store in a thread of its own: no store can hold up an answer."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._store: Store | None = None
        self._lock = threading.Lock()
        self._reading: threading.Event | None = None
        self._known: tuple[Intent, ...] = ()
        self._complaint = ""

    def read(self) -> tuple[Intent, ...]:
        """Return the intents; those of the last time if the store does not answer within its patience."""
        if self._absent():
            return ()
        with self._lock:
            reading = self._reading
            if reading is None:
                reading = self._reading = threading.Event()
                self._open()
                threading.Thread(target=self._read, args=(reading,), daemon=True).start()
        reading.wait(PATIENCE_SECONDS)
        return self._known

    def _absent(self) -> bool:
        """Spare the loading of the database's code where there is no store at all."""
        path = self._url.removeprefix("sqlite:///")
        return path != self._url and not Path(path).exists()

    def _open(self) -> None:
        # Loading this code takes longer than any store may; it is done once, before the time runs.
        from ovirt_placement.store import Store

        if self._store is None:
            try:
                self._store = Store(self._url, patience_seconds=PATIENCE_SECONDS, create=False)
            except UserError as error:
                self._complain(str(error))

    def _read(self, reading: threading.Event) -> None:
        try:
            if self._store is not None:
                self._known = self._store.blocking_intents()
                self._complain("")
        except UserError as error:
            self._known = ()
            self._complain(str(error))
        finally:
            self._reading = None
            reading.set()

    def _complain(self, text: str) -> None:
        """Say once what is wrong, and once that it is over."""
        if text and text != self._complaint:
            _log.warning("open migrations are unknown: %s", text)
        elif self._complaint and not text:
            _log.warning("open migrations are known again")
        self._complaint = text
