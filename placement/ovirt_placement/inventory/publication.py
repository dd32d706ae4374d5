"""A version of the engine's state, what it has that an earlier one has not, and what is saved of it."""

import contextlib
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from operator import attrgetter, is_
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import fields, replace

from ovirt_placement.model import Snapshot
from ovirt_service.files import open_regular

#: The long lists of a snapshot, of which the records that differ travel alone, and what a record is known by.
_LISTS: Mapping[str, Callable[[Any], str]] = {
    **dict.fromkeys(("hosts", "vms", "affinity_groups", "affinity_labels"), attrgetter("id")),
    "frozen_keys": attrgetter("vm"),
}
#: Records that are encoded at a time: other threads decide meanwhile.
_PART = 500

_FIELDS = Snapshot.__struct_fields__
_decoders = {field.name: msgspec.msgpack.Decoder(field.type) for field in fields(Snapshot)}
_encode = msgspec.msgpack.encode

#: What is known before anything is.
EMPTY = Snapshot(clusters=(), hosts=(), vms=(), affinity_groups=(), affinity_labels=())


class Changes(msgspec.Struct, frozen=True):
    """The fields of a snapshot that differ."""

    #: What they hold, in parts; of a long list, the records that are new or differ.
    content: dict[str, list[msgspec.Raw]] = {}
    #: Of a long list with other records, or in another order: by what these are known, in their order.
    orders: dict[str, list[str]] = {}


def find_changes(before: Snapshot, now: Snapshot) -> Changes:
    """What there is now; what is as it was before is the same object."""
    content: dict[str, list[msgspec.Raw]] = {}
    orders: dict[str, list[str]] = {}
    for field in _FIELDS:
        old, new = getattr(before, field), getattr(now, field)
        if old is new:
            continue
        if (key := _LISTS.get(field)) is None:
            content[field] = [msgspec.Raw(_encode(new))]
            continue
        known = set(map(id, old))
        content[field] = list(_parts([one for one in new if id(one) not in known]))
        order = list(map(key, new))
        if order != list(map(key, old)):
            orders[field] = order
    return Changes(content, orders)


def _parts(records: list[Any]) -> Iterator[msgspec.Raw]:
    for at in range(0, len(records), _PART):
        yield msgspec.Raw(_encode(records[at : at + _PART]))


def with_changes(before: Snapshot, changes: Changes) -> Snapshot:
    """The snapshot as it is now. Raises `ValueError` if these are no changes of it."""
    values: dict[str, Any] = {}
    try:
        for field, parts in changes.content.items():
            found = [_decoders[field].decode(part) for part in parts]
            if (key := _LISTS.get(field)) is None:
                (values[field],) = found
                continue
            records = {key(one): one for one in getattr(before, field)}
            records.update((key(one), one) for part in found for one in part)
            values[field] = tuple([records[name] for name in changes.orders.get(field, records)])
    except KeyError as error:
        raise ValueError(f"there is no {error}") from None
    return with_known(before, replace(before, **values))


def with_known(before: Snapshot, now: Snapshot) -> Snapshot:
    """The snapshot with the same objects for what is as it was: what was looked up in them holds."""
    values: dict[str, Any] = {}
    for field in _FIELDS:
        old, new = getattr(before, field), getattr(now, field)
        if (key := _LISTS.get(field)) is not None and old is not new:
            known = {key(one): one for one in old}
            new = tuple([same if (same := known.get(key(one))) == one else one for one in new])
            values[field] = old if len(old) == len(new) and all(map(is_, old, new)) else new
        elif old == new:
            values[field] = old
    return replace(now, **values)


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@cache
def boot_id() -> bytes:
    """Name this run of the machine: a clock that starts with it means nothing to the next."""
    return bytes.fromhex(_BOOT_ID.read_text().strip().replace("-", ""))


#: The service writes, its group reads.
_MODE = 0o640


def replaced(path: Path, contents: Iterable[bytes]) -> None:
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


_NEVER = float("-inf")


class Moments(NamedTuple):
    """Since when the parts of a snapshot may be out of date, by `now`; minus infinity for never read."""

    #: When the engine was last asked what has changed; what happened later may be missing, and of a few
    #: objects about which it takes long to answer also what happened before.
    read_at: float
    #: When all was last read, whatever had changed.
    whole_at: float = _NEVER
    #: When it was last read how busy hosts and VMs are.
    statistics_at: float = _NEVER
    #: When the store was last asked for placement keys, whether or not it answered.
    store_asked_at: float = _NEVER
    #: When the placement keys were those of the store.
    keys_at: float = _NEVER
    #: When all that placement keys refer to was last read of all VMs; what events reported since is there,
    #: too.
    details_at: float = _NEVER
    #: When the engine last answered all searches for members of placement rules.
    searches_at: float = _NEVER

    @property
    def as_of(self) -> float:
        """What happened before this moment is there, as far as the engine and the store reported it.

        A store that does not answer makes nothing older: what it said last counts.
        """
        return min(self.read_at, self.store_asked_at)

    @property
    def store_answers(self) -> bool:
        """Whether the store could be read when it was last asked for placement keys."""
        return self.keys_at == self.store_asked_at


@dataclass(frozen=True)
class Publication:
    """What the inventory service knows, in a version."""

    #: The same number means the same content; a higher one is newer, also after the service restarted.
    version: int
    moments: Moments
    snapshot: Snapshot

    @property
    def age_seconds(self) -> float:
        """How long ago something may have happened that is not there."""
        return now() - self.moments.as_of


def age(moment: float) -> float | None:
    """How many seconds ago a moment was; None for never."""
    return None if moment == _NEVER else now() - moment


def now() -> float:
    """Seconds since the machine started: one clock for all its processes, that nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


STATE_FILE = "state"
#: Larger than any engine's: who can write here must not fill the memory.
_LARGEST = 1 << 30


_CHECKSUM_SIZE = 4


class _Saved(msgspec.Struct, frozen=True, array_like=True):
    #: Of the machine's run, since moments count from there, and of what was saved: another is not read.
    boot: bytes
    release: str
    version: int
    moments: tuple[float, ...]
    content: Changes


#: What is saved holds records of the model: another shape of these is another release.
STATE_RELEASE = "2"


def save_state(directory: Path, publication: Publication) -> None:
    """Put the state in the place of the one that was saved before. Raises `OSError`."""
    content = find_changes(EMPTY, publication.snapshot)
    saved = _Saved(boot_id(), STATE_RELEASE, publication.version, tuple(publication.moments), content)
    encoded = msgspec.msgpack.encode(saved)
    replaced(directory / STATE_FILE, (_checksum(encoded), encoded))


def restore_state(directory: Path, oldest: float) -> Publication | None:
    """What was saved, if it holds at this moment or later; None if it is older, damaged, or is not there."""
    try:
        with open(open_regular(directory / STATE_FILE, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            if os.fstat(file.fileno()).st_size > _LARGEST:
                return None
            checksum, content = file.read(_CHECKSUM_SIZE), file.read()
        if checksum != _checksum(content):
            return None
        saved = msgspec.msgpack.decode(content, type=_Saved)
        moments = Moments(*saved.moments)
        if (saved.boot, saved.release) != (boot_id(), STATE_RELEASE) or not oldest <= moments.as_of <= now():
            return None
        return Publication(saved.version, moments, with_changes(EMPTY, saved.content))
    except (OSError, ValueError, TypeError):
        return None


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECKSUM_SIZE, "big")


NAMES_FILE = "names"
#: No shell is to search more than these; the engine's own names are shorter.
_MOST_NAMES = 100_000
_LONGEST_NAME = 255


class NameList:
    """A file with lines of kind, tab, name: written only when names have changed."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / NAMES_FILE
        self._written: bytes | None = None

    def publish(self, snapshot: Snapshot) -> None:
        """Write the names, if they are not what was written; where that fails, the next call tries again."""
        content = names_text(snapshot).encode()
        if content == self._written:
            return
        with contextlib.suppress(OSError):  # no decision waits for what only shells read
            replaced(self._path, (content,))
            self._written = content

    def withdraw(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()


def names_text(snapshot: Snapshot) -> str:
    """One line for each name: its kind (`vm`, `host`, `cluster`, `group`), a tab, the name.

    Left out is what a line of text or an argument cannot hold: control characters, a leading hyphen.
    """
    lines = sorted({f"{kind}\t{name}\n" for kind, name in _named(snapshot) if _is_plain(name)})
    return "".join(lines[:_MOST_NAMES])


def _named(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    yield from (("cluster", each.name) for each in snapshot.clusters)
    yield from (("group", each.name) for each in snapshot.affinity_groups)
    yield from (("host", each.name) for each in snapshot.hosts)
    yield from (("vm", each.name) for each in snapshot.vms)


def _is_plain(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable() and not name.startswith("-")
