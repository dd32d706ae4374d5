"""What a store says, asked in a thread of its own: no store can hold up who asks, whatever state it is in."""

from __future__ import annotations

import importlib
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from ovirt_service.errors import UserError
from ovirt_service.threads import BackgroundThread

#: The first answer has nothing known to fall back on: a store that answers may take longer.
FIRST_PATIENCE_SECONDS = 1.0

Found = TypeVar("Found")

_log = logging.getLogger(__name__)


class Stored(Generic[Found]):
    """What a store said last, for all threads of a process."""

    def __init__(
        self, ask: Callable[[Found], Found], nothing: Found, close: Callable[[], object] = lambda: None
    ) -> None:
        """`ask` reads the store; it gets what it answered last, and raises `UserError` if it is away.

        `close` closes what it has opened.
        """
        self._ask = ask
        self._close = close
        self._closed = False
        self._lock = threading.Lock()
        self._reading: threading.Event | None = None
        self.found = nothing
        #: Why the last reading found nothing; empty if it did.
        self.error = ""
        #: Whether a reading has ended, in whatever way.
        self.answered = False

    @property
    def trouble(self) -> str:
        """Why nothing is known, or nothing newer; empty while the store answers."""
        return self.error if self.answered else "the store has not answered yet"

    def look(self, patience_seconds: float) -> bool:
        """Ask the store now, and wait for its answer so long; whether it came, be it an error.

        A reading that began earlier is waited for, too, and goes on when patience is over.
        """
        until = time.monotonic() + patience_seconds
        with self._lock:
            earlier = self._reading
        if earlier is not None and not earlier.wait(patience_seconds):
            return False
        with self._lock:
            reading = self._reading or self._begin()
        return reading.wait(max(0.0, until - time.monotonic()))

    def close(self) -> None:
        """Close the store; a reading that is under way closes it at its end."""
        with self._lock:
            self._closed = True
            idle = self._reading is None
        if idle:
            self._close()

    def _begin(self) -> threading.Event:
        reading = self._reading = threading.Event()
        BackgroundThread(target=self._read, args=(reading,), name="store").start()
        return reading

    def _read(self, reading: threading.Event) -> None:
        try:
            self.found, self.error = self._ask(self.found), ""
        except UserError as error:
            self.error = str(error)
        except Exception as error:
            text = f"reading the store failed: {error}"
            if text != self.error:
                _log.exception("reading the store failed")
            self.error = text
        with self._lock:
            self.answered, self._reading = True, None
            closed = self._closed
        if closed:
            self._close()
        reading.set()


def loaded(url: str) -> bool:
    """Load the database's code, which takes longer than any store may: before the time runs.

    It is not loaded where there is no store at all, nor has been, and that is false.
    """
    path = url.removeprefix("sqlite:///")
    try:
        if path != url:
            os.stat(path)
    except FileNotFoundError:
        if not os.path.exists(f"{path}.made"):
            return False
    except OSError:
        pass  # opening it reports what is wrong
    for module in ("ovirt_placement.store.intents", "ovirt_placement.store.keys"):
        importlib.import_module(module)
    return True
