"""What decisions leave behind for later ones: a file a VM, in a folder that all processes here share.

A unit appends one record in one write, which no crash can halve and no other writer split. So it works
without a service, over all workers and both proxies. A later decision about a VM begins its file anew; of a
file that it knows, a reader asks only for its size and its time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import msgspec

from ovirt_placement.inventory.expected import places

#: Whether expected hosts were the real ones: a byte each, the oldest first.
_OUTCOMES = "outcomes"
_MOST_OUTCOMES = 4096

#: Traces of one call lie closer together than this; what comes later is another decision about the same VM.
ONE_CALL_SECONDS = 1.0

_LENGTH = struct.Struct(">I")
#: What a file's name may consist of: ids of the engine do, whatever else asks.
_SAFE = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.")


class Outcome(Enum):
    """How an expectation ended, as its byte in the file of outcomes."""

    RIGHT = b"+"
    WRONG = b"-"


class Trace(msgspec.Struct, frozen=True, array_like=True):
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

    def by_host(self) -> Mapping[str, int]:
        """The ranks by host."""
        return dict(zip(self.hosts, array("I", self.ranks), strict=True))


def packed(ranks: Iterable[int]) -> bytes:
    """Ranks as a trace holds them."""
    return array("I", ranks).tobytes()


class Outcomes(NamedTuple):
    """How many of the latest expected hosts were the real ones, and how many were not."""

    right: int
    wrong: int


class _Read(NamedTuple):
    """What was read of a file, and up to where."""

    size: int
    #: When it was last written to, in ns.
    changed: int
    traces: tuple[Trace, ...]


class Traces:
    """The traces in one folder, as far as this process has read them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        #: Joined by hand: every call looks at every file.
        self._prefix = f"{folder}/"
        self._known: dict[str, _Read] = {}
        self._changed = -1
        self._found: Mapping[str, tuple[Trace, ...]] | None = None

    def leave(self, vm: str, trace: Trace) -> None:
        """Add a trace of a VM; that it cannot be written is no reason to fail a decision."""
        if not vm or not _SAFE.issuperset(vm) or vm.startswith("."):
            return
        content = msgspec.msgpack.encode(trace)
        with contextlib.suppress(OSError):
            try:
                self._append(vm, content)
            except FileNotFoundError:
                places.make(self._folder)
                self._append(vm, content)

    def read(self) -> Mapping[str, tuple[Trace, ...]]:
        """All traces by VM, the oldest of each first; the same object as long as nothing changes."""
        try:
            changed = os.stat(self._folder).st_mtime_ns
        except OSError:
            self._known, self._changed, self._found = {}, -1, None
            return {}
        if changed != self._changed:
            names = [name for name in os.listdir(self._folder) if name != _OUTCOMES]
            self._known = {name: self._known.get(name, _Read(0, 0, ())) for name in names}
            self._changed = changed
            self._found = None
        for name, known in tuple(self._known.items()):
            self._refresh(name, known)
        if self._found is None:
            self._found = {name: known.traces for name, known in self._known.items() if known.traces}
        return self._found

    def drop(self, vm: str, outcome: Outcome | None = None) -> None:
        """Remove the traces of a VM; of several who find out how it ended, the first takes note."""
        self._forget(vm)
        try:
            os.unlink(self._prefix + vm)
        except OSError:
            return
        if outcome is not None:
            with contextlib.suppress(OSError):
                self._append(_OUTCOMES, outcome.value, framed=False)

    def outcomes(self) -> Outcomes:
        """How the latest expectations ended."""
        try:
            with open(self._folder / _OUTCOMES, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST_OUTCOMES))
                told = file.read()
        except OSError:
            return Outcomes(0, 0)
        return Outcomes(told.count(Outcome.RIGHT.value), told.count(Outcome.WRONG.value))

    def _append(self, name: str, content: bytes, *, framed: bool = True) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._prefix + name, flags, 0o660)
        try:
            if framed:
                # Units of one call write at the same time: one of them begins the file anew.
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if time.time() > os.fstat(descriptor).st_mtime + ONE_CALL_SECONDS:
                    os.ftruncate(descriptor, 0)
            os.write(descriptor, _LENGTH.pack(len(content)) + content if framed else content)
        finally:
            os.close(descriptor)

    def _refresh(self, name: str, known: _Read) -> None:
        path = self._prefix + name
        try:
            found = os.stat(path)
            if (found.st_size, found.st_mtime_ns) == (known.size, known.changed):
                return
            with open(path, "rb") as file:
                content = file.read()
        except OSError:
            self._forget(name)
            return
        self._known[name] = _Read(len(content), found.st_mtime_ns, tuple(_decoded(content)))
        self._found = None

    def _forget(self, name: str) -> None:
        self._known.pop(name, None)
        self._found = None


def _decoded(content: bytes) -> Iterator[Trace]:
    """Whole records; what is no record ends the reading."""
    at = 0
    while at + _LENGTH.size <= len(content):
        (length,) = _LENGTH.unpack_from(content, at)
        at += _LENGTH.size
        if at + length > len(content):
            return
        try:
            yield msgspec.msgpack.decode(content[at : at + length], type=Trace)
        except msgspec.MsgspecError:
            return
        at += length
