"""Lays over a snapshot what the store says: within the patience of a decision, else what it said last."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ovirt_placement.config import StoreSettings
from ovirt_placement.inventory.client.intents import IntentReader, with_intents
from ovirt_placement.inventory.client.keys import KeyReader, as_recorded
from ovirt_placement.inventory.client.stored import FIRST_PATIENCE_SECONDS, Found, Stored, loaded
from ovirt_placement.model import Snapshot
from ovirt_placement.model.snapshot import STORED, Part
from ovirt_service.saying import Complaint

if TYPE_CHECKING:
    from ovirt_placement.store.intents import Intent
    from ovirt_placement.store.keys import KeyRecords

_log = logging.getLogger(__name__)


class IntentOverlay:
    """Open intents of an engine, which stand in `pending`."""

    def __init__(self, settings: StoreSettings, engine: str) -> None:
        self._settings = settings
        nothing: tuple[Intent, ...] = ()
        reader = IntentReader(settings.url, engine, settings.patience_seconds)
        self._stored = Stored(reader, nothing, reader.close)
        self._complaint = Complaint(_log, "open migrations are unknown", "open migrations are known again")
        self._lock = threading.Lock()
        #: With what it was made of; the same object comes again, so that what it has indexed is kept.
        self._made: tuple[Snapshot, list[tuple[object, ...]], Snapshot] | None = None

    def close(self) -> None:
        """Close the store."""
        self._stored.close()

    def over(self, base: Snapshot) -> Snapshot:
        """Return the snapshot with the intents that are open now; none if the store is known to be away."""
        if not _look(self._stored, self._settings):
            return base
        self._complaint.say(self._stored.trouble)
        intents = () if self._stored.error else self._stored.found
        if not intents:
            return base
        laid: list[tuple[object, ...]] = [(intent.id, intent.state, intent.fresh) for intent in intents]
        with self._lock:
            last = self._made
            if last is None or last[0] is not base or last[1] != laid:
                last = self._made = (base, laid, with_intents(base, intents))
            return last[2]


class KeyOverlay:
    """Placement keys of an engine, where nobody publishes them."""

    def __init__(self, settings: StoreSettings, engine: str) -> None:
        self._settings = settings
        nothing: KeyRecords | None = None
        reader = KeyReader(settings.url, engine, settings.patience_seconds)
        self._stored = Stored(reader, nothing, reader.close)
        self._complaint = Complaint(_log, "placement keys are unknown", "placement keys are known again")
        self._lock = threading.Lock()
        self._made: tuple[Snapshot, KeyRecords | None, Snapshot] | None = None
        self._unread: tuple[Part, ...] = ()

    def close(self) -> None:
        """Close the store."""
        self._stored.close()

    def look(self) -> KeyRecords | None:
        """Return the keys that the store holds now; None if there is no store, or none that ever answered."""
        asked = _look(self._stored, self._settings)
        if asked:
            self._complaint.say(self._stored.trouble)
        self._unread = (STORED,) if asked and self._stored.trouble and self._stored.found is None else ()
        return self._stored.found

    def over(self, base: Snapshot, records: KeyRecords | None) -> Snapshot:
        """Return the snapshot with the keys; the same object for the same two."""
        with self._lock:
            last = self._made
            if last is None or last[0] is not base or last[1] is not records:
                last = self._made = (base, records, as_recorded(base, records))
            if last[2].unread != self._unread:
                last = self._made = (base, records, replace(last[2], unread=self._unread))
            return last[2]


def _look(stored: Stored[Found], settings: StoreSettings) -> bool:
    """Ask the store, if there is one."""
    if not loaded(settings.url):
        return False
    usual = settings.patience_seconds
    stored.look(usual if stored.answered else max(usual, FIRST_PATIENCE_SECONDS))
    return True
