"""A test that leaves descriptors, threads or child processes behind fails: thousands share a process.

What a fixture of a class, a module or the session has set up stays until its own end, and so do the threads
that its threads begin; what a test leaves is what was not there before it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ovirt_service import process
from tests.kit.own_time import is_quick

#: What is asked to end may take so long: a server closes a connection once it sees that its client has.
_PATIENCE_SECONDS = 3.0
_PAUSE_SECONDS = 0.005

_BEFORE = pytest.StashKey["_Held"]()
#: What serves snapshots now; it is closed at the end of the test that made it.
SERVED = set[Any]()


class _Held(NamedTuple):
    """What a process holds: descriptors with what they are of, threads, and the numbers of its children."""

    descriptors: frozenset[tuple[int, str]]
    threads: frozenset[threading.Thread]
    children: frozenset[int]

    def without(self, other: _Held) -> _Held:
        return _Held(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))

    def with_all_of(self, other: _Held) -> _Held:
        return _Held(*(mine | theirs for mine, theirs in zip(self, other, strict=True)))

    def __str__(self) -> str:
        lines = [f"descriptor {number}: {target}" for number, target in sorted(self.descriptors)]
        lines += [f"thread {thread.name}" for thread in self.threads]
        lines += [f"process {child}: {_command(child)}" for child in sorted(self.children)]
        return "; ".join(lines)


class Leaks:
    """Compares what the process holds before and after each test."""

    def __init__(self) -> None:
        #: What fixtures hold that outlast a test.
        self._shared = _Held(frozenset(), frozenset(), frozenset())
        _note_who_begins_threads()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        item.stash[_BEFORE] = _held()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[Any]:
        if fixturedef.scope == "function":
            return (yield)
        before = _held()
        try:
            return (yield)
        finally:
            self._shared = self._shared.with_all_of(_held().without(before))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """As a process would end with the test, what it has opened for itself is closed."""
        result = yield
        getattr(item, "funcargs", {}).clear()  # what a test was given goes with it
        process.close_all()
        if not is_quick(item):
            return result
        left = self._left(item.stash[_BEFORE])
        until = time.monotonic() + _PATIENCE_SECONDS
        while any(left) and time.monotonic() < until:
            time.sleep(_PAUSE_SECONDS)
            gc.collect()
            left = self._left(item.stash[_BEFORE])
        if any(left):
            pytest.fail(f"left behind: {left}", pytrace=False)
        return result

    def _left(self, before: _Held) -> _Held:
        left = _held().without(before).without(self._shared)
        threads = frozenset(thread for thread in left.threads if not self._is_of_shared(thread))
        return left._replace(threads=threads, descriptors=frozenset(self._closable(left)))

    def _closable(self, left: _Held) -> Iterator[tuple[int, str]]:
        """Without sockets where fixtures are shared: a client of theirs connects again when it likes."""
        for number, target in left.descriptors:
            if not (self._shared.descriptors and target.startswith("socket:")):
                yield number, target

    def _is_of_shared(self, thread: threading.Thread | None) -> bool:
        """Whether one of the threads that began it, directly or not, is a shared fixture's."""
        while thread is not None:
            if thread in self._shared.threads:
                return True
            thread = getattr(thread, "begun_by", None)
        return False


def _held() -> _Held:
    """What is held now, without what Python and joblib keep for processes until the end of this one."""
    server: Any = forkserver._forkserver  # type: ignore[attr-defined]
    trackers: list[Any] = [resource_tracker._resource_tracker]
    if (of_joblib := sys.modules.get("joblib.externals.loky.backend.resource_tracker")) is not None:
        trackers.append(of_joblib._resource_tracker)
    descriptors = set()
    own = {server._forkserver_alive_fd, *(tracker._fd for tracker in trackers)}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            if int(name) not in own:
                descriptors.add((int(name), os.readlink(f"/proc/self/fd/{name}")))
    listing = f"/proc/{os.getpid()}/fd"
    threads = frozenset(t for t in threading.enumerate() if not isinstance(t, threading._DummyThread))
    helpers = {server._forkserver_pid, *(tracker._pid for tracker in trackers)}
    children = frozenset(child for child in _children() if child not in helpers)
    return _Held(frozenset(one for one in descriptors if one[1] != listing), threads, children)


def _children() -> Iterator[int]:
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):
            yield from map(int, Path(f"/proc/self/task/{task}/children").read_text().split())


def _command(process: int) -> str:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        return " ".join(word.decode(errors="replace") for word in words)[:120] or "ended, not awaited"
    return "ended"


def _note_who_begins_threads() -> None:
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        thread.begun_by = threading.current_thread()  # type: ignore[attr-defined]
        start(thread)

    threading.Thread.start = noted  # type: ignore[method-assign]
