"""The library's one way to know the engine: the service that follows it, else the engine itself."""

import logging
import sys
import threading
import time
from typing import NamedTuple

from ovirt_placement import config as configuration
from ovirt_placement.config import Config
from ovirt_placement.inventory.connection import NoAnswer, NoService, Services
from ovirt_placement.inventory.decision import NoSnapshot
from ovirt_placement.inventory.direct import EngineState
from ovirt_placement.inventory.protocol import Measured, Refresh, State, Wake, ask
from ovirt_placement.inventory.publication import EMPTY, Moments, Publication, now, with_changes, with_known
from ovirt_placement.inventory.stored import Overlay
from ovirt_placement.lookups.index import share, with_more_pending
from ovirt_placement.model import Pending, Snapshot
from ovirt_service.process import at_end
from ovirt_service.repetition import Said


class Opened:
    """What one engine's state is read and decoded with."""

    def __init__(self, config: Config) -> None:
        self.config = config
        #: What was decoded last, for all threads: under the lock.
        self.lock = threading.Lock()
        self.publication: Publication | None = None
        self.engine = EngineState(config)
        #: What is pending over it.
        self._overlay = Overlay()

    def with_pending(self, snapshot: Snapshot, pending: tuple[Pending, ...]) -> Snapshot:
        """The snapshot with this on its way besides."""
        if not pending:
            return snapshot
        return self._overlay.over(
            snapshot, pending, lambda: with_more_pending(snapshot, pending, like=snapshot)
        )


#: How long a caller who names no deadline waits for a snapshot.
DEFAULT_DEADLINE_SECONDS = 10.0

_log = logging.getLogger(__name__)
_said = Said()

#: Before all that was read: JSON has no infinity.
_EVER = -sys.float_info.max


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
        #: All that was asked for until the end of the command, by what another engine, store or publication
        #: would differ in: a process asks for few engines, and several may share a store.
        self.opened: dict[object, Opened] = {}


_process = _Process()


def opened(config: Config) -> Opened:
    """What is open for these settings, until `close`."""
    at_end(close)
    settings = config.inventory.directory, config.engine, config.store, config.ha.tagged
    with _process.lock:
        found = _process.opened.get(settings)
        if found is None:
            found = _process.opened[settings] = Opened(config)
        return found


def close() -> None:
    """Log out of engines and close stores, at the end of a command; who asks again opens them again."""
    global _process
    ended, _process = _process, _Process()
    for one in ended.opened.values():
        one.engine.close()
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
    asked = opened(config)
    try:
        return _served(asked, max(_EVER, now() - max_age), max_age <= 0, vm, until)
    except NoService:
        return Known(asked.engine.base(max_age, until, vm, measured=measured).snapshot, None)


def wait_for_change(timeout: float, *, config: Config | None = None) -> bool:
    """Wait until the service has another version than this process has seen; whether it did in time.

    Raises `NoService`, mostly at once, if there is nobody to wake us.
    """
    config = config or configured()
    seen = opened(config).publication
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
    return Known(opened.with_pending(publication.snapshot, reply.pending), publication)


def _decoded(opened: Opened, reply: State, seen: Publication | None) -> Publication:
    """What the service answers, once a version for all threads. Raises `ValueError` if it cannot be read."""
    with opened.lock:
        before = EMPTY if seen is None else seen.snapshot
        if seen is not None and seen.version == reply.version:
            snapshot = before
        else:
            snapshot = with_changes(before if reply.since else EMPTY, reply.changes)
            snapshot = snapshot if reply.since else with_known(before, snapshot)
            if seen is not None:
                share(snapshot, like=before)
        publication = Publication(reply.version, Moments(*reply.moments), snapshot)
        if opened.publication is None or opened.publication.version <= publication.version:
            opened.publication = publication
        return publication
