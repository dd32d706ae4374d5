"""Reads the engine itself where no service runs: few processes of a user at once."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ovirt_placement.config import Config
from ovirt_placement.inventory.decision import Base, NoSnapshot
from ovirt_placement.inventory.on_demand import (
    NO_DEMANDS,
    Demands,
    KnownSearches,
    needed,
    read_searches,
    read_statistics,
    with_statistics,
)
from ovirt_placement.inventory.protocol import Measured
from ovirt_placement.inventory.publication import now
from ovirt_placement.inventory.stored import KeyWatch, OpenIntents, Overlay, WatchedKeys, demands_of
from ovirt_placement.model import Snapshot
from ovirt_service.errors import UserError
from ovirt_service.files import digest_name, memory_folder, one_locked
from ovirt_service.process import BackgroundThread

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection
    from ovirt_placement.engine.policies import PolicyReader
    from ovirt_placement.engine.requests import Doubts

#: How many processes of a user may read the engine at the same time.
READERS = 2
#: One that is stopped in its turn must not stop the others for good.
_PATIENCE_SECONDS = 30.0
#: Bytes of the digest that names files in memory.
_NAME_SIZE = 8


class _Read(NamedTuple):
    """A snapshot, when its reading began, and what was read besides the topology."""

    snapshot: Snapshot
    at: float
    demands: Demands
    measured: Measured

    def serves(self, oldest: float, demands: Demands, measured: Measured) -> bool:
        """Whether it is young enough, and has all that is asked for."""
        return self.at >= oldest and self.measured >= measured and not demands.lack(self.demands)


class EngineState:
    """What one process reads of one engine, over what the store says; a `Source` of decisions.

    It keeps one connection and the last snapshot; a reading goes on when its asker cannot wait longer.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._keys = KeyWatch(config.store, config.engine.name)
        self._intents = OpenIntents(config.store, config.engine.name)
        self._overlay = Overlay()
        self._connection: EngineConnection | None = None
        self._closed = False
        self._policies: PolicyReader | None = None
        self._doubts: Doubts | None = None
        self._changed = threading.Condition()
        self._reading = False
        self._readings = 0
        self._last_read: _Read | None = None
        self._error: Exception | None = None
        self._searches = KnownSearches()

    def read(
        self,
        max_age: float,
        until: float,
        demands: Demands = NO_DEMANDS,
        measured: Measured = Measured.FOR_RESERVATION,
    ) -> Snapshot | None:
        """Return a snapshot no older than this, waiting for one until this moment of `time.monotonic`.

        It holds what placement keys and rules demand, and what is to be measured. None if it takes longer.
        Raises what the reading raised.
        """
        with self._changed:
            oldest = now() - max_age
            while self._last_read is None or not self._last_read.serves(oldest, demands, measured):
                if not self._reading:
                    self._reading = True
                    BackgroundThread(target=self._read, args=(demands, measured)).start()
                awaited = self._readings
                while self._readings == awaited:
                    if not self._changed.wait(until - time.monotonic()):
                        return None
                if self._error is not None:
                    raise self._error
            return self._last_read.snapshot

    def _read(self, demands: Demands, measured: Measured) -> None:
        found, error = None, None
        try:
            name = digest_name(self._config.engine.url or "", _NAME_SIZE)
            turns = [memory_folder("readers") / f"{name}-{number}" for number in range(READERS)]
            with one_locked(turns, _PATIENCE_SECONDS):
                began = now()
                found = _Read(self._read_all(demands, measured), began, demands, measured)
        except Exception as caught:  # whatever it is, those who wait must learn of it
            error = caught
        with self._changed:
            self._reading = False
            self._readings += 1
            self._error = error
            self._last_read = found or self._last_read
            self._changed.notify_all()

    def _read_all(self, demands: Demands, measured: Measured) -> Snapshot:
        # The SDK takes long to load and is not needed where a service runs.
        from ovirt_placement.engine.consistency import consistent
        from ovirt_placement.engine.topology import detailed

        connection = self._connected()
        found = self._read_topology(connection)
        wanted = needed(
            found.clusters, tagged=self._config.ha.tagged, host_tags=demands.host_tags, measured=measured
        )
        if wanted:
            found = with_statistics(found, read_statistics(connection, wanted))
        if demands.details:
            found = consistent(detailed(connection, found, demands.details))
        self._searches.want(demands.searches)
        self._searches.put(read_searches(connection, demands.searches))
        return replace(found, member_searches=self._searches.found)

    def _read_topology(self, connection: EngineConnection) -> Snapshot:
        """Read it, and once more where it suddenly lacks most of what was there."""
        from ovirt_placement.engine.policies import PolicyReader
        from ovirt_placement.engine.requests import Doubts, kinds_of
        from ovirt_placement.engine.topology import read_snapshot

        self._policies = self._policies or PolicyReader()
        self._doubts = self._doubts or Doubts()
        read = partial(read_snapshot, connection, policies=self._policies)
        return self._doubts.confirm(read, kinds_of)

    def _connected(self) -> EngineConnection:
        from ovirt_placement.engine.connection.client import connect

        with self._changed:
            if self._closed:
                raise UserError("the process that reads the engine ends")
            if self._connection is None:
                self._connection = connect(self._config.engine)
            return self._connection

    def close(self) -> None:
        """Log out of the engine and close the store; a reading that is under way is ended."""
        with self._changed:
            self._closed = True
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
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
            found = self.read(max_age, until, demands_of(keys.records), measured)
        except UserError as error:
            raise NoSnapshot(str(error)) from error
        except OSError as error:  # no descriptors are left, say: it may pass
            raise NoSnapshot(error.strerror or str(error)) from error
        if found is None:
            raise NoSnapshot(f"{self._config.engine.address}: the engine has not answered yet")
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
        what = (keys.records, keys.is_unread)
        return self._intents.over(self._overlay.over(found, what, partial(keys.over, found)))

    def _last(self) -> _Read | None:
        """What was read last; nothing once a service has run since, which writes in its directory.

        A process that asked the engine while another service was away would refuse a start by that.
        """
        with self._changed:
            read = self._last_read
        if read is None:
            return None
        # Before the file's time: an interruption in between makes no reading look younger than the file.
        age = now() - read.at
        try:
            written = time.time() - self._config.inventory.directory.stat().st_mtime
        except OSError:
            return read
        return None if age > written else read
