"""The library's one way to know the engine: the service that follows it, else the engine itself."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ovirt_placement import config as configuration
from ovirt_placement.config import Config, EngineSettings, StoreSettings
from ovirt_placement.inventory.asking import NoAnswer, NoService, Services
from ovirt_placement.inventory.changes import EMPTY, with_changes, with_known
from ovirt_placement.inventory.decision import NoSnapshot
from ovirt_placement.inventory.direct import EngineState
from ovirt_placement.inventory.protocol import Measured, Refresh, State, Wake, ask
from ovirt_placement.inventory.publication import Moments, Outcomes, Publication, now
from ovirt_placement.lookups.index import share, with_more_pending
from ovirt_placement.model import Pending, Snapshot
from ovirt_service.entry import at_end
from ovirt_service.saying import Said


class _Settings(NamedTuple):
    """What another engine, store or publication would differ in; several engines may share a store."""

    directory: Path
    engine: EngineSettings
    store: StoreSettings
    tagged: bool


class Opened:
    """What one engine's state is read and decoded with."""

    def __init__(self, config: Config) -> None:
        self.config = config
        #: What was decoded last, for all threads: under the lock.
        self.lock = threading.Lock()
        self.publication: Publication | None = None
        #: What is pending over it; the same object comes again, so that what it has indexed is kept.
        self._laid: tuple[Snapshot, tuple[Pending, ...], Snapshot] | None = None
        self.engine = EngineState(config)
        #: How many use it now; and whether it is closed once these are done.
        self.users = 0
        self.dropped = False

    def close(self) -> None:
        """Log out of the engine and close the store; what is under way is ended."""
        self.engine.close()

    def laid(self, snapshot: Snapshot, pending: tuple[Pending, ...]) -> Snapshot:
        """The snapshot with this on its way besides."""
        if not pending:
            return snapshot
        with self.lock:
            if self._laid is None or self._laid[0] is not snapshot or self._laid[1] != pending:
                self._laid = snapshot, pending, with_more_pending(snapshot, pending, like=snapshot)
            return self._laid[2]


class OpenEngines:
    """What is open: for the settings that are in use, and for those that were used last.

    Who goes on to use several settings in turn keeps them in use meanwhile.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: dict[_Settings, Opened] = {}

    @contextmanager
    def using(self, config: Config) -> Iterator[Opened]:
        """Lend what is open for these settings; what nobody uses any more, and is for others, is closed."""
        settings = _Settings(config.inventory.directory, config.engine, config.store, config.ha.tagged)
        with self._lock:
            opened = self._opened.get(settings)
            if opened is None:
                opened = Opened(config)
                idle = [other for other, one in self._opened.items() if not one.users]
                closing = [self._opened.pop(other) for other in idle]
                self._opened[settings] = opened
            else:
                closing = []
            opened.users += 1
        for one in closing:
            one.close()
        try:
            yield opened
        finally:
            with self._lock:
                opened.users -= 1
                over = opened.dropped and not opened.users
            if over:
                opened.close()

    def close(self) -> None:
        """Close all, also what is in use: it is closed again when it is not any more."""
        with self._lock:
            closing, self._opened = list(self._opened.values()), {}
            for one in closing:
                one.dropped = True
        for one in closing:
            one.close()


#: How long a caller who names no deadline waits for a snapshot.
DEFAULT_DEADLINE_SECONDS = 10.0

_log = logging.getLogger(__name__)
_said = Said()


class Known(NamedTuple):
    """The engine's state, and where it is from."""

    snapshot: Snapshot
    #: What the inventory service knows, of which it is made; None where the engine itself was read.
    publication: Publication | None


class _Process:
    """What one process keeps between two calls: what it has open, the configuration, services that hang."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.config: Config | None = None
        self.services = Services()
        self.engines = OpenEngines()


_process = _Process()


@contextmanager
def using(config: Config) -> Iterator[Opened]:
    """Keep what is open for these settings, whatever else this process asks for meanwhile."""
    at_end(close)
    with _process.engines.using(config) as opened:
        yield opened


def close() -> None:
    """Log out of engines and close stores, at the end of a command; who asks again opens them again."""
    global _process
    ended, _process = _process, _Process()
    ended.engines.close()
    ended.services.close()


def snapshot(
    *,
    config: Config | None = None,
    max_age: float | None = None,
    deadline: float | None = None,
    vm: str | None = None,
) -> Snapshot:
    """Return the engine's state: no older than `max_age` seconds, and within `deadline` seconds from now.

    The inventory service answers at once where the engine, asked a moment ago, reported no change; else after
    one refresh that all who wait share. Where no service runs, this process reads the engine itself. With a
    `max_age` of 0 everything is read again, for who may not rely on events: the engine can log one late.
    Open intents of the store stand in `pending`, and so does what was decided a moment ago; a rule leaves out
    those of the VM that it is asked about.
    With `vm`, the engine is asked for this VM, if it was not lately and the VM is not among those that are
    known: events of a VM that has just come may be late.
    Without arguments the configuration says what is fresh, and the deadline is 10 s.

    Raises `NoSnapshot` if none comes in time, `UserError` if the configuration is at fault.
    """
    return known(config=config, max_age=max_age, deadline=deadline, vm=vm).snapshot


def known(
    *,
    config: Config | None = None,
    max_age: float | None = None,
    deadline: float | None = None,
    vm: str | None = None,
    measured: Measured = Measured.FOR_RESERVATION,
) -> Known:
    """Return what `snapshot` does, and where it is from.

    What nobody needs `measured` is not read where no service runs: it takes longer than all the rest.
    """
    config = config or configured()
    until = time.monotonic() + (DEFAULT_DEADLINE_SECONDS if deadline is None else deadline)
    max_age = config.inventory.max_age_seconds if max_age is None else max_age
    with using(config) as opened:
        try:
            return _served(opened, max(0.0, now() - max_age), max_age <= 0, vm, until)
        except NoService:
            return Known(opened.engine.base(max_age, until, vm, measured=measured).snapshot, None)


def wait_for_change(timeout: float, *, config: Config | None = None) -> bool:
    """Wait until the service has another version than this process has seen; whether it did in time.

    Raises `NoService`, mostly at once, if there is nobody to wake us.
    """
    config = config or configured()
    with using(config) as opened:
        seen = opened.publication
        try:
            wake = Wake(0 if seen is None else seen.version)
            ask(config.inventory.directory, wake, timeout, int, _process.services)
        except NoAnswer:
            return False
        return True


def configured() -> Config:
    """The configuration that this process has read."""
    with _process.lock:
        if _process.config is None:
            _process.config = configuration.load()
        return _process.config


def _served(opened: Opened, not_before: float, whole: bool, vm: str | None, until: float) -> Known:
    """What the service knows. Raises `NoService`, and `NoSnapshot` if it knows nothing fresh enough."""
    directory, seen = opened.config.inventory.directory, opened.publication
    question = Refresh(not_before, whole, vm, 0 if seen is None else seen.version)
    try:
        reply = ask(directory, question, until - time.monotonic(), State, _process.services)
    except NoAnswer:
        raise NoSnapshot(
            f"no fresh snapshot in time: the inventory at {directory} is still reading"
        ) from None
    if reply.error is not None:
        moments = Moments(*reply.moments) if reply.moments else None
        last = "" if moments is None else f"; the last one is {now() - moments.as_of:.0f} s old"
        raise NoSnapshot(f"no fresh snapshot: {reply.error}{last}")
    try:
        publication = _decoded(opened, reply, seen)
    except ValueError:
        if _said.is_news((directory, "unreadable")):
            _log.warning("what the inventory at %s answers cannot be read: the engine is", directory)
        raise NoService from None
    return Known(opened.laid(publication.snapshot, reply.pending), publication)


def _decoded(opened: Opened, reply: State, seen: Publication | None) -> Publication:
    """What the service answers, once a version for all threads. Raises `ValueError` if it cannot be read."""
    with opened.lock:
        before = EMPTY if seen is None else seen.snapshot
        if seen is not None and seen.version == reply.version:
            snapshot = before
        else:
            snapshot = with_changes(before if reply.since else EMPTY, reply.changes)
            snapshot = snapshot if reply.since else with_known(before, snapshot)
            share(snapshot, like=before)
        publication = Publication(reply.version, Moments(*reply.moments), snapshot, Outcomes(*reply.outcomes))
        if opened.publication is None or opened.publication.version <= publication.version:
            opened.publication = publication
        return publication
