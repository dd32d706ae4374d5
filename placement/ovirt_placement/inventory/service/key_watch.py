"""The placement keys that the inventory service publishes: the store's, or the last that it could read."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovirt_placement.config import StoreSettings
from ovirt_placement.inventory.client.keys import KeyReader
from ovirt_placement.inventory.client.stored import Stored, loaded
from ovirt_service.saying import Complaint

if TYPE_CHECKING:
    from ovirt_placement.store.keys import KeyRecords

#: Nothing is published before the store was asked: decisions without keys would be worse than none so long.
_FIRST_PATIENCE_SECONDS = 3.0
#: A refresh waits so long once, when a store begins to hang.
_PATIENCE_SECONDS = 1.0
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

    def __init__(self, settings: StoreSettings, engine: str) -> None:
        self._settings = settings
        nothing: KeyRecords | None = None
        reader = KeyReader(settings.url, engine, settings.patience_seconds)
        self._stored = Stored(reader, nothing, reader.close)
        self._complaint = Complaint(_log, "placement keys cannot be read", "placement keys are read again")
        self._error = ""
        self._last = WatchedKeys()

    def close(self) -> None:
        """Close the store."""
        self._stored.close()

    def look(self, began: float) -> WatchedKeys:
        """Ask the store at this moment or later; what it said last stands in for a store that is away."""
        loaded(self._settings.url)
        answered = self._stored.look(self._patience_seconds)
        self._error = self._stored.error if answered else "the store does not answer"
        records, read_at = self._stored.found, self._last.read_at if self._error else began
        self._report(records)
        self._last = WatchedKeys(records, began, read_at)
        return self._last

    @property
    def _patience_seconds(self) -> float:
        """A store that may answer is given the time that it takes to read many keys; another not."""
        usual = self._settings.patience_seconds
        if self._error:
            return usual
        return max(usual, _FIRST_PATIENCE_SECONDS if self._last.asked_at == _NEVER else _PATIENCE_SECONDS)

    def _report(self, records: KeyRecords | None) -> None:
        instead = "decisions are made without them" if records is None else "those read last stay published"
        self._complaint.say(f"{self._error}; {instead}" if self._error else "")
        if self._last.asked_at == _NEVER and not self._error and records is None:
            _log.info("there is no store yet, and so there are no placement keys")
