"""Puts together what is known of engine and placement keys: the version that readers and decisions get.

It saves that version, for when it starts again, and the names in it, for shells that complete them.
"""

import asyncio
import contextlib
import logging
import os
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import get_args

import msgspec
from msgspec.structs import replace

from ovirt_placement.inventory.on_demand import Demands
from ovirt_placement.inventory.publication import (
    EMPTY,
    Moments,
    Publication,
    State,
    find_changes,
    now,
    with_changes,
    with_known,
)
from ovirt_placement.inventory.service.attempts import InventoryMetrics, in_thread
from ovirt_placement.inventory.stored import WatchedKeys, demands_of
from ovirt_placement.lookups import prepare, share
from ovirt_placement.model import AffinityGroup, Cluster, Host, Snapshot, Vm
from ovirt_placement.model.snapshot import HOST_TAGS, STORED, VM_DETAILS, Needed, Part
from ovirt_service.files import digest, open_regular
from ovirt_service.log import Complaint

#: So long the first publication waits for the details that keys refer to, and for who searches find: a
#: decision without them may put a VM where it must not be, but without a publication there is none.
_FIRST_DETAILS_SECONDS = 10.0
_NEVER = float("-inf")
#: Readers that ask seldom have missed some versions.
_KEPT_VERSIONS = 64
#: So often is the state saved: it is of use while it is young.
_SAVE_SECONDS = 5.0
#: So long after the last decision new versions are still made ready for the next: placements come in bursts.
_REST_SECONDS = 60.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PublicationState:
    """What one turn found; without a snapshot there is nothing yet that may be believed."""

    snapshot: Snapshot | None
    moments: Moments
    needs: Demands
    #: What is needed of statistics and tags and was not read yet.
    lacking: Needed


class Publisher:
    """One version after the other; made within the loop of asyncio that it is for, read from any thread."""

    def __init__(
        self, directory: Path, ready: Callable[[], None], metrics: InventoryMetrics, engine: str = ""
    ) -> None:
        """`ready` is called once the first version is there that was read; not where another was saved.

        `engine` is the URL of the one that is read.
        """
        self._directory, self._engine = directory, engine
        self._ready = ready
        self._metrics = metrics
        self._names = NameList(directory)
        self._publishing = asyncio.Lock()
        #: The latest versions, without what was looked up in them: who knows one gets what has changed since.
        self._latest: dict[int, Snapshot] = {}
        self._complaint = Complaint(_log, "the state cannot be saved", "the state is saved again")
        #: When the last decision was asked for: the next versions are made ready for more.
        self.decided_at = _NEVER
        #: Whether the engine was read, and not only the saved state.
        self.has_read = False
        #: What was reported last of the two.
        self.state: PublicationState | None = None
        self.keys = WatchedKeys()
        #: None before there is anything.
        self.version: Publication | None = None
        metrics.age.set_function(lambda: now() - self.moments.as_of)
        metrics.as_of.set_function(lambda: max(0.0, time.time() - (now() - self.moments.as_of)))

    @property
    def moments(self) -> Moments:
        """When the parts of the version were true."""
        return Moments(_NEVER) if self.version is None else self.version.moments

    @property
    def number(self) -> int:
        """The number of the version; 0 before there is any."""
        return 0 if self.version is None else self.version.version

    def restore(self, longest_age_seconds: float) -> None:
        """Begin with the state that was saved before, if that is not older."""
        found = restore_state(self._directory, now() - longest_age_seconds, self._engine)
        if found is not None:
            self.put(found)
            self._names.publish(found.snapshot)
            _log.info("answers by the state that was saved %.0f s ago until it has read", found.age_seconds)

    async def publish(self, *, wait_for_details: bool) -> None:
        """Let what is known by now be the version, if it may be believed.

        The first that is read may have to wait for details of VMs.
        """
        async with self._publishing:
            state, keys, number = self.state, self.keys, self.number
            if state is None or state.snapshot is None or keys.asked_at == _NEVER:
                return
            if not self.has_read and wait_for_details and _lacks_details(state, keys):
                return
            moments = state.moments._replace(store_asked_at=keys.asked_at, keys_at=keys.read_at)
            recorded = replace(keys.over(state.snapshot), unread=_unread(state, keys))
            self.put(version := await in_thread(partial(self._next, recorded, moments)))
            if not self.has_read or version.version != number:
                self._metrics.versions.inc()
                self._metrics.count_disabled(version.snapshot)
                await in_thread(partial(self._names.publish, version.snapshot))
            if not self.has_read:
                self.has_read = True
                await in_thread(self.save)  # it may be killed before the next time
                if not number:
                    self._ready()

    async def keep_saved(self) -> None:
        while True:
            await asyncio.sleep(_SAVE_SECONDS)
            await in_thread(self.save)

    def save(self) -> None:
        if (version := self.version) is None or not self.has_read:
            return
        try:
            save_state(self._directory, version, self._engine)
        except OSError as error:
            self._complaint.say(f"{self._directory}: {error.strerror}")
        else:
            self._complaint.say("")

    def put(self, version: Publication) -> None:
        """Let this be the version."""
        if version.version not in self._latest:
            self._latest[version.version] = replace(version.snapshot)
        if len(self._latest) > _KEPT_VERSIONS:
            del self._latest[next(iter(self._latest))]
        self.version = version

    def since(self, version: Publication, known: int | None) -> State:
        """What has changed to a version since the one that a reader has; with None the moments alone.

        Who has one that is kept no more, or a later one, of a service that was killed before it had saved
        that, gets all.
        """
        if known is None or known == version.version:
            return State(version.version, version.version, version.moments)
        before = self._latest.get(known)
        changes = find_changes(before or EMPTY, version.snapshot)
        return State(version.version, known if before else 0, version.moments, changes)

    def withdraw(self) -> None:
        """Take away what names there are: they are kept up to date no more."""
        self.save()
        self._names.withdraw()

    def _next(self, recorded: Snapshot, moments: Moments) -> Publication:
        """The version with this content: the one before with other moments, if it is the same."""
        number = max(self.number + 1, int(now() * 1_000_000))
        if (before := self.version) is None:
            return Publication(number, moments, recorded)
        recorded = with_known(before.snapshot, recorded)
        if recorded == before.snapshot:
            return Publication(before.version, moments, before.snapshot)
        make_ready = prepare if now() - self.decided_at < _REST_SECONDS else share
        make_ready(recorded, like=before.snapshot)
        return Publication(number, moments, recorded)


def _unread(state: PublicationState, keys: WatchedKeys) -> tuple[Part, ...]:
    """What is needed and was not read: also by keys and rules of which the last turn knew nothing."""
    demands = demands_of(keys.records)
    lacking = state.lacking | (demands.statistics - state.needs.statistics)
    if demands.details and state.moments.details_at == _NEVER:
        lacking |= {VM_DETAILS}
    if keys.is_unread:
        lacking |= {STORED}
    return tuple(part for part in get_args(Part) if part in lacking)


def _lacks_details(state: PublicationState, keys: WatchedKeys) -> bool:
    """Whether what keys and rules refer to is still to be read, and worth waiting for."""
    unread = not {HOST_TAGS, VM_DETAILS}.isdisjoint(_unread(state, keys))
    unanswered = bool(demands_of(keys.records).searches) and state.moments.searches_at == _NEVER
    return (unread or unanswered) and now() <= state.moments.whole_at + _FIRST_DETAILS_SECONDS


@cache
def boot_id() -> bytes:
    """Name this run of the machine: a clock that starts with it means nothing to the next."""
    return bytes.fromhex(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))


#: The service writes, its group reads.
_MODE = 0o640


def replaced(path: Path, *contents: bytes) -> None:
    """Put a new file in the place of what is there. Raises `OSError`."""
    temporary = path.with_name(f"{path.name}.new")
    try:
        temporary.unlink(missing_ok=True)  # whatever it is: opening a FIFO would wait for its reader
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(os.open(temporary, flags, _MODE), "wb") as file:
            file.writelines(contents)
        temporary.rename(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)  # it takes the room that others need
        raise


STATE_FILE = "state"
#: Larger than any engine's: who can write here must not fill the memory.
_LARGEST = 1 << 30
_CHECKSUM_SIZE = 4
_DIGEST_SIZE = 8
#: What is saved holds records of the model: another shape of these is another release.
STATE_RELEASE = "1"


def _origin(engine: str) -> bytes:
    """Of the machine's run, since moments count from there, and of one engine: ids are an engine's own."""
    return boot_id() + digest(engine, _DIGEST_SIZE)


def save_state(directory: Path, publication: Publication, engine: str = "") -> None:
    """Put the state in the place of the one that was saved before. Raises `OSError`."""
    changes = find_changes(EMPTY, publication.snapshot)
    state = State(publication.version, 0, publication.moments, changes)
    encoded = msgspec.msgpack.encode((_origin(engine), STATE_RELEASE, state))
    replaced(directory / STATE_FILE, _checksum(encoded), encoded)


def restore_state(directory: Path, oldest: float, engine: str = "") -> Publication | None:
    """What was saved of an engine, if it holds at this moment or later.

    None if it is older, of another engine, damaged, or is not there.
    """
    try:
        with open(open_regular(directory / STATE_FILE, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            if os.fstat(file.fileno()).st_size > _LARGEST:
                return None
            checksum, content = file.read(_CHECKSUM_SIZE), file.read()
        if checksum != _checksum(content):
            return None
        origin, release, state = msgspec.msgpack.decode(content, type=tuple[bytes, str, State])
        moments = state.moments
        if (origin, release) != (_origin(engine), STATE_RELEASE) or moments is None:
            return None
        if not oldest <= moments.as_of <= now():
            return None
        return Publication(state.version, moments, with_changes(EMPTY, state.changes))
    except (OSError, ValueError, TypeError):
        return None


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECKSUM_SIZE, "big")


NAMES_FILE = "names"
#: No shell is to search more than these; the engine's own names are shorter.
_MOST_NAMES = 100_000
_LONGEST_NAME = 255


class NameList:
    """A file with lines of kind, tab, name: written only when names have changed.

    Left out is what a line of text or an argument cannot hold: control characters, a leading hyphen.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / NAMES_FILE
        self._written: bytes | None = None

    def publish(self, snapshot: Snapshot) -> None:
        """Write the names, if they are not what was written; where that fails, the next call tries again."""
        named: Mapping[str, Sequence[Cluster | AffinityGroup | Host | Vm]] = {
            "cluster": snapshot.clusters,
            "group": snapshot.affinity_groups,
            "host": snapshot.hosts,
            "vm": snapshot.vms,
        }
        lines = {
            f"{kind}\t{name}\n"
            for kind, records in named.items()
            for name in (record.name for record in records)
            if 0 < len(name) <= _LONGEST_NAME and name.isprintable() and not name.startswith("-")
        }
        content = "".join(sorted(lines)[:_MOST_NAMES]).encode()
        if content != self._written:
            with contextlib.suppress(OSError):  # no decision waits for what only shells read
                replaced(self._path, content)
                self._written = content

    def withdraw(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()
