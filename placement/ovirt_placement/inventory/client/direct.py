"""Reads the engine itself where nobody publishes: one reading at a time for all threads of a process."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.reading.consistency import consistent
from ovirt_placement.engine.reading.detail import NO_DETAILS, Detail
from ovirt_placement.inventory.client.turns import turn
from ovirt_placement.inventory.on_demand.details import referred
from ovirt_placement.inventory.on_demand.searches import NO_SEARCHES, KnownSearches, Wanted, read_searches
from ovirt_placement.inventory.on_demand.statistics import (
    Measured,
    needed,
    read_statistics,
    with_statistics,
)
from ovirt_placement.inventory.published.publication import now
from ovirt_placement.model import Snapshot
from ovirt_service.errors import UserError
from ovirt_service.threads import BackgroundThread

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection
    from ovirt_placement.engine.reading.doubts import Doubts
    from ovirt_placement.engine.reading.policies import PolicyReader

_log = logging.getLogger(__name__)


class DirectReader:
    """Keeps one connection and the last snapshot; the reading goes on when its asker cannot wait longer."""

    def __init__(self, settings: EngineSettings, *, tagged: bool = False, folder: Path | None = None) -> None:
        """`tagged`: tags of hosts name failure domains, and are read.

        With those who share the `folder` it takes turns.
        """
        self._settings = settings
        self._folder = folder
        self._tagged = tagged
        self._connection: EngineConnection | None = None
        self._closed = False
        self._policies: PolicyReader | None = None
        self._doubts: Doubts | None = None
        self._changed = threading.Condition()
        self._reading = False
        self._readings = 0
        self._snapshot: Snapshot | None = None
        self._read_at = 0.0
        self._error: Exception | None = None
        #: What the last snapshot holds of VMs besides themselves.
        self._details = NO_DETAILS
        self._measured = Measured.NOTHING
        self._host_tags = False
        self._searched = NO_SEARCHES
        self._searches = KnownSearches()

    def read(
        self,
        max_age: float,
        until: float,
        key_levels: frozenset[str] = frozenset(),
        measured: Measured = Measured.FOR_RESERVATION,
        *,
        host_tags: bool = False,
        searches: Wanted = NO_SEARCHES,
    ) -> Snapshot | None:
        """Return a snapshot no older than this, waiting for one until this moment of `time.monotonic`.

        It holds what placement keys on these levels refer to, the tags of hosts if asked for, what is to be
        measured, and who the searches find. None if it takes longer. Raises what the reading raised.
        """
        with self._changed:
            oldest, wanted = now() - max_age, referred(key_levels)
            while (
                self._snapshot is None
                or self._read_at < oldest
                or wanted not in self._details
                or self._measured < measured
                or self._host_tags < host_tags
                or searches - self._searched
            ):
                if not self._reading:
                    self._reading = True
                    asked = (wanted, measured, host_tags, searches)
                    BackgroundThread(target=self._read, args=asked).start()
                awaited = self._readings
                while self._readings == awaited:
                    if not self._changed.wait(until - time.monotonic()):
                        return None
                if self._error is not None:
                    raise self._error
            return self._snapshot

    def close(self) -> None:
        """Log out, and break off a reading that is under way."""
        with self._changed:
            self._closed = True
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def last(self) -> tuple[Snapshot, float] | None:
        """The last snapshot and the moment at which its reading began; None if there is none yet."""
        with self._changed:
            return None if self._snapshot is None else (self._snapshot, self._read_at)

    def _read(self, details: Detail, measured: Measured, host_tags: bool, searches: Wanted) -> None:
        began = now()
        snapshot, error = None, None
        try:
            with turn(self._folder):
                began = now()
                snapshot = self._read_all(details, measured, host_tags, searches)
        except Exception as caught:  # whatever it is, those who wait must learn of it
            error = caught
        with self._changed:
            self._reading = False
            self._readings += 1
            self._error = error
            if snapshot is not None:
                self._snapshot, self._read_at = snapshot, began
                self._details, self._measured, self._host_tags = details, measured, host_tags
                self._searched = searches
            self._changed.notify_all()

    def _read_all(self, details: Detail, measured: Measured, host_tags: bool, searches: Wanted) -> Snapshot:
        # The SDK takes long to load and is not needed where somebody publishes.
        from ovirt_placement.engine.reading.vm_details import detailed

        connection = self._connected()
        found = self._read_topology(connection)
        wanted = needed(found.clusters, tagged=self._tagged, host_tags=host_tags, measured=measured)
        if wanted:
            found = with_statistics(found, read_statistics(connection, wanted))
        if details:
            found = consistent(detailed(connection, found, details))
        self._searches.want(searches)
        self._searches.put(read_searches(connection, searches))
        return replace(found, member_searches=self._searches.found)

    def _read_topology(self, connection: EngineConnection) -> Snapshot:
        """Read it, and once more where it suddenly lacks most of what was there."""
        from ovirt_placement.engine.reading.doubts import Doubts, Implausible, kinds_of
        from ovirt_placement.engine.reading.policies import PolicyReader
        from ovirt_placement.engine.reading.topology import read_snapshot

        self._policies = self._policies or PolicyReader()
        self._doubts = self._doubts or Doubts()
        found = read_snapshot(connection, policies=self._policies)
        try:
            self._doubts.check(kinds_of(found))
        except Implausible as implausible:
            _log.warning("%s: %s", connection.url, implausible)
            found = read_snapshot(connection, policies=self._policies)
            self._doubts.check(kinds_of(found))
        return found

    def _connected(self) -> EngineConnection:
        from ovirt_placement.engine.connection.client import connect

        with self._changed:
            if self._closed:
                raise UserError("nobody waits for the engine any more")
            if self._connection is None:
                self._connection = connect(self._settings)
            return self._connection
