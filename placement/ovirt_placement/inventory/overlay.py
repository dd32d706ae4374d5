"""What the store says of a snapshot, laid over it within a time that no store can lengthen."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ovirt_placement.errors import UserError
from ovirt_placement.inventory.intents import with_intents
from ovirt_placement.inventory.keys import with_keys
from ovirt_placement.model import Snapshot

if TYPE_CHECKING:
    from ovirt_placement.store import Intent, Store
    from ovirt_placement.store_keys import KeyRecords, KeyStore

#: The first answer of a process has nothing known to fall back on: a store that answers may take longer.
_FIRST_PATIENCE_SECONDS = 1.0

_log = logging.getLogger(__name__)


class _Complaint:
    """Says once what is wrong, and once that it is over."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._text = ""

    def say(self, text: str) -> None:
        if text and text != self._text:
            _log.warning("%s are unknown: %s", self._subject, text)
        elif self._text and not text:
            _log.warning("%s are known again", self._subject)
        self._text = text


class Overlay:
    """Reads a store in a thread of its own, and keeps the last snapshot that it was laid over."""

    def __init__(self, url: str, patience_seconds: float) -> None:
        self._url = url
        #: What the store may cost an answer to the engine, whatever state it is in.
        self._usual_patience_seconds = patience_seconds
        self._patience_seconds = max(patience_seconds, _FIRST_PATIENCE_SECONDS)
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._key_store: KeyStore | None = None
        self._reading: threading.Event | None = None
        self._intents: tuple[Intent, ...] = ()
        self._keys: KeyRecords | None = None
        self._about_intents = _Complaint("open migrations")
        self._about_keys = _Complaint("placement keys")
        #: Each with what it was made of; the same object comes again, so that what it has indexed is kept.
        self._keyed: tuple[Snapshot, KeyRecords, Snapshot] | None = None
        self._made: tuple[Snapshot, list[tuple[object, ...]], Snapshot] | None = None

    def over(self, base: Snapshot) -> Snapshot:
        """Return the snapshot with open intents and placement keys.

        They are those of the last time if the store does not answer within its patience; keys that never
        could be read are those of the snapshot itself.
        """
        absent = self._absent()
        if not absent:
            self._read()
        intents, keys = () if absent else self._intents, self._keys
        with self._lock:
            return self._with_intents(base if keys is None else self._with_keys(base, keys), intents)

    def _with_keys(self, base: Snapshot, keys: KeyRecords) -> Snapshot:
        last = self._keyed
        if last is None or last[0] is not base or last[1] is not keys:
            last = self._keyed = (base, keys, with_keys(base, keys))
        return last[2]

    def _with_intents(self, base: Snapshot, intents: tuple[Intent, ...]) -> Snapshot:
        if not intents:
            return base
        laid: list[tuple[object, ...]] = [(intent.id, intent.state, intent.fresh) for intent in intents]
        last = self._made
        if last is None or last[0] is not base or last[1] != laid:
            last = self._made = (base, laid, with_intents(base, intents))
        return last[2]

    def _absent(self) -> bool:
        """Spare the loading of the database's code where there is no store at all."""
        path = self._url.removeprefix("sqlite:///")
        return path != self._url and not Path(path).exists()

    def _read(self) -> None:
        """Read the store, or wait for who reads it already, as long as patience lasts."""
        with self._lock:
            reading = self._reading
            if reading is None:
                reading = self._reading = threading.Event()
                self._open()
                threading.Thread(target=self._read_all, args=(reading,), daemon=True).start()
            patience = self._patience_seconds
        reading.wait(patience)

    def _open(self) -> None:
        # Loading this code takes longer than any store may; it is done once, before the time runs.
        from ovirt_placement.store import Store
        from ovirt_placement.store_keys import KeyStore

        if self._key_store is None:
            try:
                patience = self._usual_patience_seconds
                self._store = Store(self._url, patience_seconds=patience, create=False)
                self._key_store = KeyStore(self._url, patience_seconds=patience, create=False)
            except UserError as error:
                self._about_intents.say(str(error))

    def _read_all(self, reading: threading.Event) -> None:
        try:
            if self._read_intents():
                self._read_keys()
        finally:
            self._patience_seconds = self._usual_patience_seconds
            self._reading = None
            reading.set()

    def _read_intents(self) -> bool:
        """Whether there is a store that answers."""
        if self._store is None:
            return False
        try:
            self._intents = self._store.blocking_intents()
        except UserError as error:
            self._intents = ()
            self._about_intents.say(str(error))
            return False
        self._about_intents.say("")
        return True

    def _read_keys(self) -> None:
        """Read the keys if there are others than those that are known."""
        if self._key_store is None:
            return
        try:
            if self._keys is None or self._key_store.revision() != self._keys.revision:
                self._keys = self._key_store.records()
        except UserError as error:
            self._about_keys.say(str(error))
        else:
            self._about_keys.say("")
