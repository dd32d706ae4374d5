"""Waits in a thread for what calls for a look: what the inventory publishes, or else the engine's events."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from ovirt_placement import inventory
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading.events import EngineEvent, read_events
from ovirt_placement.inventory.service.feed import Feed, FeedInterrupted

#: For so long the inventory service lets an asker wait, so that the end is heard of.
_WAIT_SECONDS: Final = 1.0
#: More events than this at once are not looked at one by one.
_PAGE: Final = 500

_log = logging.getLogger(__name__)


class Changed(NamedTuple):
    """What happened since the last time."""

    #: Whether the inventory service has published another snapshot.
    published: bool
    events: tuple[EngineEvent, ...]
    #: Whether there were more events than were read.
    missed: bool


class Changes:
    """Notices changes; one thread may wait for them, with `fileno`."""

    def __init__(
        self, config: Config, connection: EngineConnection, seconds: float, wanted: Callable[[], bool]
    ) -> None:
        """Without an inventory service the engine is asked for events every `seconds`, while `wanted`."""
        self._config = config
        self._connection = connection
        self._seconds = seconds
        self._wanted = wanted
        self._lock = threading.Lock()
        self._published = False
        self._events: list[EngineEvent] = []
        self._missed = False
        self._taken = threading.Event()
        self._feed: Feed | None = None
        self._awake, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def watch(self) -> None:
        """Begin, until it is closed."""
        threading.Thread(target=self._watch, name="changes", daemon=True).start()

    def close(self) -> None:
        """Release what is waited for: there is no rest any more that could be ended."""
        ends, self._awake, self._wake = (self._awake, self._wake), -1, -1
        for end in ends:
            os.close(end)

    def fileno(self) -> int:
        """What is ready to be read once something happened."""
        return self._awake

    def wake(self) -> None:
        """Wake who waits, though nothing happened."""
        with suppress(OSError):  # it has been reported often enough, or is closed
            os.write(self._wake, b"!")

    def take(self) -> Changed:
        """What happened since this was called last."""
        with self._lock:
            with suppress(BlockingIOError):
                os.read(self._awake, 4096)
            changed = Changed(self._published, tuple(self._events), self._missed)
            self._published, self._events, self._missed = False, [], False
        self._taken.set()
        return changed

    def _watch(self) -> None:
        while self._wake >= 0:
            try:
                published = inventory.wait_for_change(_WAIT_SECONDS, config=self._config)
            except inventory.NoService:
                self._read_events()
                time.sleep(self._seconds)
                continue
            if published:
                self._report_publication()

    def _report_publication(self) -> None:
        self._taken.clear()
        with self._lock:
            self._published = True
        self.wake()
        # Until it is read, it counts as not seen yet, and would be reported at once again.
        self._taken.wait()

    def _read_events(self) -> None:
        """Ask the engine; if it is away, the daemon will say so."""
        if not self._wanted():
            self._feed = None
            return
        try:
            after = 0 if self._feed is None else self._feed.after
            page = read_events(self._connection, after=after, at_most=_PAGE)
        except Exception as error:  # whatever it is, the daemon meets it, too, and says so
            _log.debug("no events: %s", error)
            return
        self._take_page(page)

    def _take_page(self, page: tuple[EngineEvent, ...]) -> None:
        """Report new events; at first, and after a gap, that it is not known what happened before."""
        now = time.monotonic()
        new: tuple[EngineEvent, ...] | None = None
        if self._feed is not None:
            with suppress(FeedInterrupted):
                new = self._feed.take(page, now)
        if new is None:
            self._feed = Feed(page, now)
        with self._lock:
            self._missed |= new is None
            self._events.extend(new or ())
        if new is None or new:
            self.wake()
