"""The placement keys that the inventory service publishes: the store's, or the last that it could read."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovirt_placement.config import StoreSettings
from ovirt_placement.inventory.keys import KeyReader
from ovirt_placement.inventory.stored import FIRST_PATIENCE_SECONDS, Complaint, Stored

if TYPE_CHECKING:
    from ovirt_placement.store_keys import KeyRecords

_NEVER = float("-inf")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WatchedKeys:
    """What was found at one look; None before there is a store."""

    records: KeyRecords | None = None
    #: When the store was last asked, whether or not it answered.
    asked_at: float = _NEVER
    #: When these were the keys of the store.
    read_at: float = _NEVER


class KeyWatch:
    """Looks at the store; looks follow one another."""

    def __init__(self, settings: StoreSettings) -> None:
        self._usual_patience_seconds = settings.patience_seconds
        nothing: KeyRecords | None = None
        self._stored = Stored(KeyReader(settings.url, settings.patience_seconds), nothing)
        self._complaint = Complaint("placement keys cannot be read", "placement keys are read again")
        self._error = ""
        self._last = WatchedKeys()

    def look(self, began: float) -> WatchedKeys:
        """Ask the store at this moment or later; what it said last stands in for a store that is away.

        One that answered the last time is given the time that reading many keys takes; another not.
        """
        patience = self._usual_patience_seconds
        if not self._error:
            patience = max(patience, FIRST_PATIENCE_SECONDS)
        answered = self._stored.look(patience)
        self._error = self._stored.error if answered else "the store does not answer"
        records, read_at = self._stored.found, self._last.read_at if self._error else began
        self._tell(records)
        self._last = WatchedKeys(records, began, read_at)
        return self._last

    def _tell(self, records: KeyRecords | None) -> None:
        instead = "decisions are made without them" if records is None else "those read last stay published"
        self._complaint.say(f"{self._error}; {instead}" if self._error else "")
        if self._last.asked_at == _NEVER and not self._error and records is None:
            _log.info("there is no store yet, and so there are no placement keys")
