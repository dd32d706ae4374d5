"""The library's one way to know the engine: the service that follows it, else the engine itself."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ovirt_placement import config as configuration
from ovirt_placement.config import Config
from ovirt_placement.inventory.connection import NoAnswer, NoService, Services
from ovirt_placement.inventory.decision import Base, NoSnapshot
from ovirt_placement.inventory.on_demand import NO_DEMANDS, Demands, KnownSearches, needed
from ovirt_placement.inventory.publication import (
    EMPTY,
    Measured,
    Moments,
    Publication,
    Refresh,
    State,
    Wake,
    ask,
    now,
    with_changes,
    with_known,
)
from ovirt_placement.inventory.stored import KeyWatch, OpenIntents, Overlay, WatchedKeys, demands_of
from ovirt_placement.lookups import share
from ovirt_placement.model import Snapshot
from ovirt_service.errors import UserError
from ovirt_service.files import digest_name, memory_folder, one_locked
from ovirt_service.process import at_end, in_background
from ovirt_service.repetition import Said

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection

#: How long a caller who names no deadline waits for a snapshot.
DEFAULT_DEADLINE_SECONDS = 10.0
#: How many processes of a user may read the engine at the same time.
READERS = 2
#: One that is stopped in its turn must not stop the others for good.
_PATIENCE_SECONDS = 30.0
#: Bytes of the digest that names files in memory.
_NAME_SIZE = 8
#: Before all that was read: JSON has no infinity.
_EVER = -sys.float_info.max

_log = logging.getLogger(__name__)
_said = Said()


class Known(NamedTuple):
    """The engine's state, and where it is from."""

    snapshot: Snapshot
    #: What the inventory service knows, of which it is made; None where the engine itself was read.
    publication: Publication | None


_lock = threading.Lock()
_services = Services()
#: All that was asked for until the end of the command, by what another engine, store or publication would
#: differ in: a process asks for few engines, and several may share a store.
_opened: dict[object, EngineState] = {}


def opened(config: Config) -> EngineState:
    """What is open for these settings, until `close`."""
    at_end(close)
    settings = config.inventory.directory, config.engine, config.store, config.ha.tagged
    with _lock:
        if settings not in _opened:
            _opened[settings] = EngineState(config)
        return _opened[settings]


def close() -> None:
    """Log out of engines and close stores, at the end of a command; who asks again opens them again."""
    configured.cache_clear()
    while _opened:
        _opened.popitem()[1].close()
    _services.close()


def snapshot(
    *, config: Config | None = None, max_age: float | None = None, deadline: float | None = None
) -> Snapshot:
    """Return the engine's state: no older than `max_age` seconds, and within `deadline` seconds from now.

    The inventory service answers at once where the engine, asked a moment ago, reported no change; else after
    one refresh that all who wait share. Where no service runs, this process reads the engine itself. With a
    `max_age` of 0 everything is read again, for who may not rely on events: the engine can log one late.
    Open intents of the store stand in `pending`, and so does what was decided a moment ago; a rule leaves out
    those of the VM that it is asked about.
    Without arguments the configuration says what is fresh, and the deadline is 10 s.

    Raises `NoSnapshot` if none comes in time, `UserError` if the configuration is at fault.
    """
    return known(config=config, max_age=max_age, deadline=deadline).snapshot


def known(
    *,
    config: Config | None = None,
    max_age: float | None = None,
    deadline: float | None = None,
    measured: Measured = Measured.FOR_RESERVATION,
) -> Known:
    """Return what `snapshot` does, and where it is from.

    What need not be `measured` is not read where no service runs: it takes longer than all the rest.
    """
    config = config or configured()
    until = time.monotonic() + (DEFAULT_DEADLINE_SECONDS if deadline is None else deadline)
    max_age = config.inventory.max_age_seconds if max_age is None else max_age
    asked = opened(config)
    try:
        return asked.served(max_age, until)
    except NoService:
        return Known(asked.base(max_age, until, measured=measured).snapshot, None)


def wait_for_change(timeout: float, *, config: Config | None = None) -> bool:
    """Wait until the service has another version than this process has seen; whether it did in time.

    Raises `NoService`, mostly at once, if there is none to wake us.
    """
    config = config or configured()
    seen = opened(config).publication
    try:
        ask(config.inventory.directory, Wake(seen.version if seen else 0), timeout, int, _services)
    except NoAnswer:
        return False
    return True


@cache
def configured() -> Config:
    """The configuration that this process has read."""
    return configuration.load()


class _Read(NamedTuple):
    """A snapshot, when its reading began, and what was read besides the topology."""

    snapshot: Snapshot
    at: float
    demands: Demands


class EngineState:
    """What one process knows of one engine: by the service, or what it reads, over what the store says.

    It is a `Source` of decisions where no service runs. Then it keeps one connection and the last snapshot; a
    reading goes on when its asker cannot wait longer.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.Lock()
        #: What the service answered last, for all threads.
        self.publication: Publication | None = None
        self._keys = KeyWatch(config.store, config.engine.name)
        self._intents = OpenIntents(config.store, config.engine.name)
        self._overlay = Overlay()
        #: What was read last, what keys and rules there were, and it with these.
        self._keyed = EMPTY, WatchedKeys(), EMPTY
        #: The connection, and what reads the topology by it.
        self._engine: tuple[EngineConnection, Callable[[], Snapshot]] | None = None
        self._closed = False
        self._reading: Future[None] | None = None
        self._last_read: _Read | None = None
        self._searches = KnownSearches()

    def served(self, max_age: float, until: float) -> Known:
        """What the service knows. Raises `NoService`, and `NoSnapshot` if it knows nothing fresh enough."""
        directory, seen = self._config.inventory.directory, self.publication
        question = Refresh(max(_EVER, now() - max_age), max_age <= 0, known=seen.version if seen else 0)
        try:
            reply = ask(directory, question, until - time.monotonic(), State, _services)
        except NoAnswer:
            why = f"no fresh snapshot in time: the inventory at {directory} is still reading"
            raise NoSnapshot(why) from None
        moments = reply.moments
        if reply.error is not None or moments is None:
            last = "" if moments is None else f"; the last one is {now() - moments.as_of:.0f} s old"
            raise NoSnapshot(f"no fresh snapshot: {reply.error}{last}")
        try:
            publication = self._decoded(reply, moments, seen)
        except ValueError:
            if _said.is_news((directory, "unreadable")):
                _log.warning("what the inventory at %s answers cannot be read: the engine is", directory)
            raise NoService from None
        return Known(self._overlay.over(publication.snapshot, reply.pending), publication)

    def _decoded(self, reply: State, moments: Moments, seen: Publication | None) -> Publication:
        """What the service answers, once a version for all threads. Raises `ValueError` if unreadable."""
        with self._lock:
            snapshot = before = EMPTY if seen is None else seen.snapshot
            if seen is None or seen.version != reply.version:
                snapshot = with_changes(before if reply.since else EMPTY, reply.changes)
                snapshot = snapshot if reply.since else with_known(before, snapshot)
                share(snapshot, like=before)
            publication = Publication(reply.version, moments, snapshot)
            if self.publication is None or self.publication.version <= publication.version:
                self.publication = publication
            return publication

    def read(self, max_age: float, until: float, demands: Demands = NO_DEMANDS) -> Snapshot:
        """Return a snapshot no older than this, waiting for one until this moment of `time.monotonic`.

        It holds what is demanded. Raises `NoSnapshot` if it takes longer, and what the reading raised.
        """
        oldest = now() - max_age
        while True:
            with self._lock:
                last, reading = self._last_read, self._reading
                if last is not None and last.at >= oldest and not demands.lack(last.demands):
                    return last.snapshot
                if reading is None:
                    reading = self._reading = in_background(partial(self._read, demands))
            if not wait([reading], until - time.monotonic()).done:
                raise NoSnapshot(f"{self._config.engine.address}: the engine has not answered yet")
            reading.result()

    def _read(self, demands: Demands) -> None:
        found = None
        try:
            name = digest_name(self._config.engine.url or "", _NAME_SIZE)
            turns = [memory_folder("readers") / f"{name}-{number}" for number in range(READERS)]
            with one_locked(turns, _PATIENCE_SECONDS):
                began = now()
                found = _Read(self._read_all(demands), began, demands)
        finally:
            with self._lock:
                self._reading, self._last_read = None, found or self._last_read

    def _read_all(self, demands: Demands) -> Snapshot:
        # The SDK takes long to load and is not needed where a service runs.
        from ovirt_placement.engine.topology import detailed, read_searches, read_statistics

        connection, read_topology = self._connected()
        found = read_topology()
        wanted = needed(
            found.clusters, demands.statistics, tagged=self._config.ha.tagged, measured=demands.measured
        )
        if wanted:
            found = read_statistics(connection, wanted).over(found)
        if demands.details:
            found = detailed(connection, found, demands.details)
        self._searches.want(demands.searches)
        self._searches.put(read_searches(connection, demands.searches))
        return replace(found, member_searches=self._searches.found)

    def _connected(self) -> tuple[EngineConnection, Callable[[], Snapshot]]:
        """The topology is read once more where it suddenly lacks most of what was there."""
        from ovirt_placement.engine.connection.client import EngineConnection
        from ovirt_placement.engine.policies import PolicyReader
        from ovirt_placement.engine.requests import Doubts, kinds_of
        from ovirt_placement.engine.topology import read_snapshot

        with self._lock:
            if self._closed:
                raise UserError("the process that reads the engine ends")
            if self._engine is None:
                connection = EngineConnection(self._config.engine)
                read = partial(read_snapshot, connection, policies=PolicyReader())
                self._engine = connection, partial(Doubts().confirm, read, kinds_of)
            return self._engine

    def close(self) -> None:
        """Log out of the engine and close the store; a reading that is under way is ended."""
        with self._lock:
            self._closed = True
            engine, self._engine = self._engine, None
        if engine is not None:
            engine[0].close()
        self._keys.close()
        self._intents.close()

    def base(
        self,
        max_age: float,
        until: float,
        vm: str | None = None,
        *,
        patient: bool = True,
        measured: Measured = Measured.FOR_RESERVATION,
    ) -> Base:
        """Read the engine, with what the store says. All VMs are read: none has to be asked for by itself."""
        keys = self._keys.ask_keys(now())
        try:
            found = self.read(max_age, until, demands_of(keys.records)._replace(measured=measured))
        except UserError as error:
            raise NoSnapshot(str(error)) from error
        except OSError as error:  # no descriptors are left, say: it may pass
            raise NoSnapshot(error.strerror or str(error)) from error
        return Base(self._with_stored(found, keys), now() - max_age)

    def as_of(self) -> float | None:
        """The moment of the last reading; None before there is one."""
        read = self._last()
        return None if read is None else read.at

    def last(self) -> Base | None:
        """What was read last, however old; None if that is nothing."""
        read = self._last()
        if read is None:
            return None
        return Base(self._with_stored(read.snapshot, self._keys.ask_keys(now())), read.at)

    def _with_stored(self, found: Snapshot, keys: WatchedKeys) -> Snapshot:
        with self._lock:
            base, known, keyed = self._keyed
            if base is not found or (known.records, known.is_unread) != (keys.records, keys.is_unread):
                keyed = keys.over(found)
                self._keyed = found, keys, keyed
        return self._intents.over(keyed)

    def _last(self) -> _Read | None:
        """What was read last; nothing once a service has run since, which writes in its directory.

        A process that asked the engine while another service was away would refuse a start by that.
        """
        with self._lock:
            read = self._last_read
        # Before the file's time: an interruption in between makes no reading look younger than the file.
        age = 0.0 if read is None else now() - read.at
        try:
            written = time.time() - self._config.inventory.directory.stat().st_mtime
        except OSError:
            return read
        return None if age > written else read
