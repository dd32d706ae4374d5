"""Keeps what is known of the engine: one thread that follows the inventory, however many users look.

Viewers cost the engine nothing: they read what the inventory publishes. Where no inventory runs, the engine
is read every few seconds, once for all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ovirt_placement import inventory
from ovirt_placement.answers.document import known_state
from ovirt_placement.answers.status.health import HealthState, nothing_known, of_known
from ovirt_placement.config import Config
from ovirt_placement.model import Snapshot
from ovirt_service.daemon import Garbage
from ovirt_service.errors import UserError
from ovirt_service.text.saying import Complaint

#: What is published is no older than this while the engine answers: the inventory asks it more often.
_FRESH_SECONDS = 15.0
#: How long a reading may take until what was known last is shown.
_PATIENCE_SECONDS = 10.0
#: How often it is decided whether the engine itself must be read, where no inventory runs.
_PAUSE_SECONDS = 0.5
#: How often the age is looked at while the inventory publishes nothing.
_WAIT_SECONDS = 2.0

#: What is shown until something is known, or known to be unknown.
_NOTHING = object()

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class View:
    """What is known at one moment; a higher number is newer."""

    number: int
    parts: HealthState
    #: A moment of `time.monotonic` at which all of it was so.
    true_at: float
    #: Why nothing newer is known; None while the engine answers.
    error: str | None

    @property
    def snapshot(self) -> Snapshot:
        return self.parts.snapshot

    @property
    def age_seconds(self) -> float:
        return max(0.0, time.monotonic() - self.true_at)

    @property
    def known(self) -> bool:
        """Whether anything is known."""
        return self.parts.source.kind != "nothing"


class Keeper:
    """The last view, and those who are woken by the next."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._thread = threading.Thread(target=self._follow, name="keeper", daemon=True)
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._wakers: set[Callable[[], None]] = set()
        self._shown: object = _NOTHING
        self._complaint = Complaint(_log, "the state is of old", "the state is of now again")
        parts = nothing_known(config, "nothing has been read yet")
        self.view = View(_first_number(), parts, time.monotonic(), "starting")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    @contextmanager
    def subscribed(self) -> Iterator[asyncio.Event]:
        """An event of the running loop that is set by each new view."""
        loop, event = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(event.set)

        with self._lock:
            self._wakers.add(wake)
        try:
            yield event
        finally:
            with self._lock:
                self._wakers.discard(wake)

    def _follow(self) -> None:
        garbage = Garbage()
        while not self._stopped.is_set():
            try:
                self._read_state()
            except Exception:
                _log.exception("the state could not be read")
            if not self._changed():
                garbage.collect(time.monotonic())

    def _changed(self) -> bool:
        """Wait for what the inventory publishes, or for a while; whether it has published anything."""
        try:
            return inventory.wait_for_change(_WAIT_SECONDS, config=self._config)
        except inventory.NoService:
            self._stopped.wait(_PAUSE_SECONDS)
            return False

    def _read_state(self) -> None:
        try:
            found = known_state(self._config, deadline=_PATIENCE_SECONDS, max_age=_FRESH_SECONDS, stale=True)
        except UserError as error:
            # Nothing newer is to be had: what was known stays, with the reason.
            known = self.view.parts if self.view.known else nothing_known(self._config, str(error))
            self._show_state(known, self.view.true_at, str(error), None)
            return
        published = found.known.publication
        age = found.age_seconds if published is None else published.age_seconds
        version = id(found.known.snapshot) if published is None else published.version
        shown = version, found.known.snapshot.pending, found.error is None
        true_at = time.monotonic() - (age or 0.0)
        self._show_state(of_known(self._config, found), true_at, found.error, shown)

    def _show_state(self, parts: HealthState, true_at: float, error: str | None, shown: object) -> None:
        """`shown` is another thing of each state, and None while nothing newer is known."""
        new, self._shown = shown != self._shown, shown
        self.view = View(self.view.number + new, parts, true_at, error)
        self._complaint.say(error or "")
        if new:
            self._wake()

    def _wake(self) -> None:
        with self._lock:
            wakers = tuple(self._wakers)
        for wake in wakers:
            wake()


def _first_number() -> int:
    """Newer than all of a service that ran before: browsers and programs keep the numbers that they saw."""
    return time.time_ns() // 1_000_000
