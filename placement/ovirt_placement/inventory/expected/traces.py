"""What decisions leave behind for later ones, in a journal that all processes here share.

So it works without a service, over all workers and both proxies. A process looks whether the journal has
grown, and reads what was added; the rest it remembers.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import msgspec

from ovirt_placement.inventory.expected.journal import Journal
from ovirt_placement.inventory.expected.ranks import are_packed, unpacked
from ovirt_service.digests import digest
from ovirt_service.regular_files import open_regular

#: Whether expected hosts were the real ones: a byte each, the oldest first.
_OUTCOMES = "outcomes"
_MOST_OUTCOMES = 4096

#: Traces of one call lie closer together than this; what comes later is another decision about the same VM.
ONE_CALL_SECONDS = 1.0

#: A journal that is longer than this, and of which more than half is over, is begun again.
_LONG = 1 << 18
#: Of this many lists of hosts the key is remembered; engines ask about few different ones.
_MOST_LISTS = 256
_KEY_SIZE = 8
#: No id has this in it.
_BETWEEN = "\n"


class TraceOutcome(Enum):
    """How an expectation ended, as its byte in the file of outcomes."""

    RIGHT = b"+"
    WRONG = b"-"
    #: The VM runs apart from others that hard groups tie it to.
    APART = b"/"


class Trace(msgspec.Struct, frozen=True):
    """What one unit found when a VM was placed."""

    unit: str
    #: When, by the machine's clock that never jumps.
    at: float
    #: Where the VM ran then; None if it was to start.
    present: str | None
    #: The hosts that the unit was asked about.
    hosts: tuple[str, ...]
    #: The rank of each; empty where the unit is a filter that left these.
    ranks: bytes
    factor: int

    @property
    def numbers(self) -> Sequence[int]:
        """The ranks as they were packed."""
        return unpacked(self.ranks)

    def by_host(self) -> Mapping[str, int]:
        """The ranks by host."""
        return dict(zip(self.hosts, self.numbers, strict=True))


class Outcomes(NamedTuple):
    """How many of the latest expected hosts were the real ones, and how many were not.

    Those of VMs that ended apart from others of their hard groups are counted by themselves.
    """

    right: int
    wrong: int
    apart: int


class _Hosts(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """A list of hosts, by which many traces go."""

    key: bytes
    ids: str


class _Left(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A trace of a VM."""

    vm: str
    unit: str
    at: float
    present: str | None
    hosts: bytes
    ranks: bytes
    factor: int


class _Ended(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Nothing is expected any more of what was decided about a VM up to a moment."""

    vm: str
    at: float


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Hosts | _Left | _Ended).decode


class Traces:
    """The traces in one folder, as far as this process has read them. For one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._journal = Journal(folder)
        #: By VM, the oldest first. The same object as long as nothing changes.
        self.found: dict[str, tuple[Trace, ...]] = {}
        self._changed: set[str] = set()
        #: Lists of hosts by key, and the keys of those that this process has left itself.
        self._hosts: dict[bytes, tuple[str, ...]] = {}
        self._keys: dict[tuple[str, ...], bytes] = {}
        #: The lists that the journal holds, and how many traces it does.
        self._listed: set[bytes] = set()
        self._records = 0

    def leave(self, vm: str, trace: Trace) -> None:
        """Add a trace of a VM; that it cannot be written is no reason to fail a decision."""
        if not vm:
            return
        with contextlib.suppress(OSError):
            try:
                length = self._append(vm, trace)
            except BlockingIOError:
                return  # who holds the lock must hold up nobody
            except OSError:
                self._journal.begin()
                length = self._append(vm, trace)
            if length > _LONG or self._journal.damaged:
                self._shorten()

    def read(self) -> set[str]:
        """Read what was added to the journal; return the VMs of which there are others, or none, now."""
        self._catch_up()
        changed, self._changed = self._changed, set()
        return changed

    def latest(self, vm: str) -> tuple[Trace, ...]:
        """The traces of a VM, with what was added to the journal up to now."""
        self._catch_up()
        return self.found.get(vm, ())

    def drop(self, vm: str, at: float, outcome: TraceOutcome | None = None) -> None:
        """End what was decided about a VM up to a moment; of several who find out, the first takes note."""
        with contextlib.suppress(OSError), self._journal.locked(alone=True):
            self._catch_up()
            found = self.found.get(vm, ())
            if not found or found[-1].at > at:
                return
            if len(self.found) == 1:
                self._journal.remove()
            else:
                self._journal.append(_encode(_Ended(vm, at)))
            if outcome is not None:
                self._note(outcome)
        self._put(vm, ())
        self._changed.add(vm)

    def outcomes(self) -> Outcomes:
        """How the latest expectations ended."""
        try:
            with open(open_regular(self._folder / _OUTCOMES, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST_OUTCOMES))
                reported = file.read(_MOST_OUTCOMES)
        except OSError:
            return Outcomes(0, 0, 0)
        return Outcomes(*(reported.count(outcome.value) for outcome in TraceOutcome))

    def _note(self, outcome: TraceOutcome) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        file = open_regular(self._folder / _OUTCOMES, flags, 0o660)
        try:
            os.write(file, outcome.value)
        finally:
            os.close(file)

    def _append(self, vm: str, trace: Trace) -> int:
        key = self._key(trace.hosts)
        left = _left(vm, trace, key)
        with self._journal.locked():
            if key in self._listed and self._journal.is_current():
                return self._journal.append(left)
            return self._journal.append(_encode(_Hosts(key, _BETWEEN.join(trace.hosts))), left)

    def _key(self, hosts: tuple[str, ...]) -> bytes:
        key = self._keys.get(hosts)
        if key is None:
            if len(self._keys) >= _MOST_LISTS:
                self._keys.clear()
            key = self._keys[hosts] = digest(_BETWEEN.join(hosts), _KEY_SIZE)
        return key

    def _shorten(self) -> None:
        """Begin the journal again with what still counts, if that is no more than half."""
        if self._mostly_over():
            with self._journal.locked(alone=True):
                self._catch_up()
                if self._mostly_over():
                    self._journal.begin_again(self._counting())

    def _mostly_over(self) -> bool:
        return self._records >= 2 * sum(map(len, self.found.values()))

    def _counting(self) -> Iterator[bytes]:
        listed: set[bytes] = set()
        for vm, found in self.found.items():
            for trace in found:
                key = self._key(trace.hosts)
                if key not in listed:
                    listed.add(key)
                    yield _encode(_Hosts(key, _BETWEEN.join(trace.hosts)))
                yield _left(vm, trace, key)

    def _catch_up(self) -> None:
        again, records = self._journal.news()
        if again:
            before, self.found = self.found, {}
            self._listed, self._records = set(), 0
            self._take(records)
            self._hosts = {key: self._hosts[key] for key in self._listed}
            for vm in before.keys() | self.found.keys():
                if before.get(vm) == self.found.get(vm):
                    self.found[vm] = before[vm]
                else:
                    self._changed.add(vm)
        elif records:
            self._changed |= self._take(records)

    def _take(self, records: Collection[bytes]) -> set[str]:
        reported: set[str] = set()
        for content in records:
            try:
                record = _decode(content)
            except msgspec.MsgspecError:
                continue
            if isinstance(record, _Hosts):
                self._list(record)
            elif isinstance(record, _Left):
                self._records += 1
                self._add(record)
                reported.add(record.vm)
            elif (found := self.found.get(record.vm)) and found[-1].at <= record.at:
                self._put(record.vm, ())
                reported.add(record.vm)
        return reported

    def _list(self, record: _Hosts) -> None:
        self._listed.add(record.key)
        if record.key not in self._hosts:
            self._hosts[record.key] = tuple(record.ids.split(_BETWEEN)) if record.ids else ()

    def _add(self, left: _Left) -> None:
        hosts = self._hosts.get(left.hosts)
        if hosts is not None and (not left.ranks or are_packed(left.ranks, len(hosts))):
            trace = Trace(left.unit, left.at, left.present, hosts, left.ranks, left.factor)
            before = self.found.get(left.vm, ())
            of_one_call = (one for one in before if trace.at - one.at <= ONE_CALL_SECONDS)
            self._put(left.vm, (*of_one_call, trace))

    def _put(self, vm: str, traces: tuple[Trace, ...]) -> None:
        if traces:
            self.found[vm] = traces
        else:
            self.found.pop(vm, None)


def _left(vm: str, trace: Trace, key: bytes) -> bytes:
    return _encode(_Left(vm, trace.unit, trace.at, trace.present, key, trace.ranks, trace.factor))
