"""Reads the engine itself where no service runs: few processes of a machine at once."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ovirt_placement.config import Config, EngineSettings
from ovirt_placement.engine.reading.consistency import consistent
from ovirt_placement.engine.reading.owners import NO_DETAILS, Detail
from ovirt_placement.inventory.decision import Base, NoSnapshot
from ovirt_placement.inventory.on_demand import (
    NO_SEARCHES,
    KnownSearches,
    Wanted,
    needed,
    read_searches,
    read_statistics,
    referred,
    with_statistics,
)
from ovirt_placement.inventory.protocol import Measured
from ovirt_placement.inventory.publication import now
from ovirt_placement.inventory.stored import IntentOverlay, KeyOverlay, levels, names_host_tags, searches
from ovirt_placement.model import Snapshot
from ovirt_service import identity
from ovirt_service.digests import digest_name
from ovirt_service.errors import UserError
from ovirt_service.threads import BackgroundThread

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection
    from ovirt_placement.engine.reading.doubts import Doubts
    from ovirt_placement.engine.reading.policies import PolicyReader

#: How many processes of a machine may read the engine at the same time.
READERS = 2
#: One that is stopped in its turn must not stop the others for good.
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.01
_FOLDER = "readers"
#: For the owner and the group; what is made in it belongs to the group, too.
_MODE = 0o2770
#: Bytes of the digest that names a folder in memory.
_NAME_SIZE = 8
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@contextlib.contextmanager
def turn(folder: Path | None) -> Iterator[None]:
    """Wait until fewer than `READERS` processes that share this folder are in their turn, 30 s at most.

    Without a folder, or one that nobody may write to, nothing is limited.
    """
    with contextlib.ExitStack() as held:
        if folder is not None:
            with contextlib.suppress(OSError):
                held.callback(os.close, _taken(folder))
        yield


def _taken(folder: Path) -> int:
    """One of the files, locked. Raises `OSError` if that cannot be, or takes too long."""
    make(folder)
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        for number in range(READERS):
            file = os.open(folder / f"reader-{number}", _FLAGS, 0o660)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(file)
                if not isinstance(error, BlockingIOError) or time.monotonic() > until:
                    raise
            else:
                return file
        time.sleep(_PAUSE_SECONDS)


def next_to(directory: Path) -> Path:
    """The folder in the one of the service."""
    return directory / _FOLDER


def find_folder(config: Config) -> Path | None:
    """With the service, if one may write there; else in memory, by user and engine.

    None if somebody else has put something in that place, and for root where it is not root's.
    """
    directory = config.inventory.directory
    if identity.is_others(directory):
        return None
    for place in (next_to(directory), directory):
        if os.access(place, os.W_OK | os.X_OK):
            return next_to(directory)
    memory = Path("/dev/shm")  # noqa: S108 - its owner is looked at
    base = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
    name = digest_name(f"{config.engine.url} {directory}", _NAME_SIZE)
    place = base / f"ovirt-placement-{os.getuid()}-{name}"
    return place if _is_ours(place) else None


def make(folder: Path) -> None:
    """Make the folder. Raises `OSError` if that cannot be."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
        try:
            os.chmod(folder, _MODE)
        except PermissionError:
            # A unit with RestrictSUIDSGID=yes may not hand on a group: the folder is then its user's alone.
            os.chmod(folder, _MODE & 0o777)


def _is_ours(place: Path) -> bool:
    try:
        found = os.lstat(place)
    except OSError:
        return True
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


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
        from ovirt_placement.engine.reading.topology import detailed

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
        from ovirt_placement.engine.reading.doubts import Doubts, kinds_of
        from ovirt_placement.engine.reading.policies import PolicyReader
        from ovirt_placement.engine.reading.topology import read_snapshot

        self._policies = self._policies or PolicyReader()
        self._doubts = self._doubts or Doubts()
        read = partial(read_snapshot, connection, policies=self._policies)
        return self._doubts.confirm(read, kinds_of)

    def _connected(self) -> EngineConnection:
        from ovirt_placement.engine.connection.client import connect

        with self._changed:
            if self._closed:
                raise UserError("nobody waits for the engine any more")
            if self._connection is None:
                self._connection = connect(self._settings)
            return self._connection


class EngineState:
    """What one process reads of one engine; a `Source` of decisions."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._reader = DirectReader(config.engine, tagged=config.ha.tagged, folder=find_folder(config))
        self._keys = KeyOverlay(config.store, config.engine.name)
        self._intents = IntentOverlay(config.store, config.engine.name)

    def close(self) -> None:
        """Log out of the engine and close the store; what is under way is ended."""
        self._reader.close()
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
        records = self._keys.look()
        try:
            found = self._reader.read(
                max_age,
                until,
                levels(records),
                measured,
                host_tags=names_host_tags(records),
                searches=searches(records),
            )
        except UserError as error:
            raise NoSnapshot(str(error)) from error
        except OSError as error:  # no descriptors are left, say: it may pass
            raise NoSnapshot(error.strerror or str(error)) from error
        if found is None:
            raise NoSnapshot(f"{self._config.engine.address}: the engine has not answered yet")
        return Base(self._intents.over(self._keys.over(found, records)), now() - max_age)

    def as_of(self) -> float | None:
        """The moment of the last reading; None before there is one."""
        read = self._last()
        return None if read is None else read[1]

    def last(self) -> Base | None:
        """What was read last, however old; None if that is nothing."""
        read = self._last()
        if read is None:
            return None
        return Base(self._intents.over(self._keys.over(read[0], self._keys.look())), read[1])

    def _last(self) -> tuple[Snapshot, float] | None:
        """What was read last; nothing once a service has run since, which writes in its directory.

        A process that asked the engine while another service was away would refuse a start by that.
        """
        read = self._reader.last()
        try:
            written = time.time() - self._config.inventory.directory.stat().st_mtime
        except OSError:
            return read
        return None if read is None or now() - read[1] > written else read
