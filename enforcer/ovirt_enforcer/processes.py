"""Calls in processes of their own, outside the daemon's loop and ended whenever that must be.

Not in a thread, since what searches in Python holds the interpreter's lock; and a process can be ended at any
moment. It is forked from a server that has one thread and has loaded what is needed (multiprocessing's
forkserver): a fork of the daemon itself would take along locks that its other threads hold.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess, parent_process
from typing import Any, Final, Generic, TypeVar

import msgspec

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Deadline
from ovirt_service.errors import UserError

#: Policy units decide on the same machine within milliseconds: background work gives way.
_NICENESS: Final = 10
#: A process that goes on for so much longer than its deadline hangs, and is ended.
GRACE_SECONDS: Final = 15.0

_processes = multiprocessing.get_context("forkserver")

Result = TypeVar("Result")


class CallFailed(Exception):
    """A call did not come to its end; the text says why."""


def preload(*modules: str) -> None:
    """Have these modules loaded once for all processes, where none was started before."""
    _processes.set_forkserver_preload(["__main__", *modules])


class Call(Generic[Result]):
    """A call of a function that a process makes; for one thread."""

    def __init__(self, function: Callable[..., Result], arguments: tuple[Any, ...], seconds: float) -> None:
        """The function, with its arguments, must be one that can be pickled. After `seconds` it is ended."""
        self._asked = function, arguments
        self._seconds = seconds
        self._until = math.inf
        #: Ready to be read once the call is over; None before it has begun, and once its result was taken.
        self.answer: Connection | None = None
        self._process: BaseProcess | None = None
        #: Why its process could not be started.
        self._failed: CallFailed | None = None
        self.cancelled = False

    def begin(self) -> None:
        """Start the process; `result` says if that fails."""
        self._until = time.monotonic() + self._seconds
        try:
            self.answer, theirs = _processes.Pipe(duplex=False)
            with theirs:
                process = _processes.Process(target=_work, args=(theirs, *self._asked), daemon=True)
                process.start()
        except OSError as error:  # no descriptor, process or memory is left
            self.cancel()
            self._failed = CallFailed(f"its process cannot be started: {error}")
        else:
            self._process = process

    def over(self) -> bool:
        """Whether `result` has something to return or to raise."""
        if self.answer is None:
            return self._failed is not None
        return self.answer.poll() or time.monotonic() >= self._until

    def wait(self) -> None:
        """Until it is over; for who has nothing else to do."""
        while self.answer is not None and not self.over():
            self.answer.poll(max(0.0, self._until - time.monotonic()))

    def result(self) -> Result:
        """What the function returned, once the call is over. Raises `CallFailed`, or its `UserError`."""
        if self._failed is not None:
            raise self._failed
        if self.answer is None or not self.answer.poll():
            self.cancel()
            raise CallFailed(f"no answer within {self._seconds:.0f} s: the process was ended")
        try:
            made: Any = self.answer.recv()
        except EOFError:
            made = CallFailed("the process has ended without an answer")
        self.cancel()
        if isinstance(made, CallFailed | UserError):
            raise made
        result: Result = made
        return result

    def cancel(self) -> None:
        """End the process, if there still is one; one that has not begun shall not any more."""
        self.cancelled = True
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
            self._process = None
        if self.answer is not None:
            self.answer.close()
            self.answer = None


def with_snapshot(
    function: Callable[..., Result], snapshot: bytes, arguments: tuple[Any, ...], seconds: float
) -> Call[Result]:
    """A call of a function with a snapshot, which goes along encoded by msgpack, and more arguments."""
    return Call(_decoded, (function, snapshot, arguments), seconds)


def in_process(
    function: Callable[..., Result], snapshot: Snapshot, *arguments: Any, seconds: float, **keywords: Any
) -> Result:
    """What a function makes of a snapshot for a person who waits for it: no one else does.

    It is also given the deadline that is over after `seconds`. Raises `UserError`.
    """
    question = (function, arguments, keywords, seconds)
    call = with_snapshot(_within, msgspec.msgpack.encode(snapshot), question, seconds + GRACE_SECONDS)
    try:
        call.begin()
        call.wait()
        answer: Result = call.result()
    except CallFailed as error:
        raise UserError(f"no plan was made: {error}") from None
    finally:
        call.cancel()
    return answer


def _decoded(function: Callable[..., Any], snapshot: bytes, arguments: tuple[Any, ...]) -> Any:
    return function(msgspec.msgpack.decode(snapshot, type=Snapshot), *arguments)


def _within(
    snapshot: Snapshot,
    function: Callable[..., Result],
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
    seconds: float,
) -> Result:
    return function(snapshot, *arguments, **keywords, deadline=Deadline.after(seconds))


def _work(answer: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Be the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: it is for the daemon to hear
    os.nice(_NICENESS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        answer.send(function(*arguments))
    except UserError as error:
        answer.send(error)
    except Exception as error:  # whatever it is, the daemon must learn of it
        failed = CallFailed(f"{type(error).__name__}: {error}")
        failed.add_note(traceback.format_exc())
        answer.send(failed)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
