"""Threads that begin, or end the process; and its end when it has run out of memory or threads.

Such a process would do by half all that it went on to do: a service is started again by systemd; one that
hangs on a thread which never began is not, as Python waits for it for ever.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Final, TypeVar

from ovirt_service.errors import EXIT_STATUS

_Result = TypeVar("_Result")

#: Made before there is no memory left to make it.
_LINE = b"out of memory, or of threads: ends, as nothing can be relied on any more\n"
#: What Python says where no thread begins; it has no type of its own.
_NO_THREAD = "can't start new thread"


def is_exhaustion(error: BaseException) -> bool:
    """Whether an error says that the system gives no more memory or threads."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and _NO_THREAD in str(error))


def end() -> None:
    """End the process at once: nothing that would be tidied up can be relied on."""
    os.write(2, _LINE)
    os._exit(EXIT_STATUS)


def guarded(work: Callable[[], _Result]) -> _Result:
    """Work; end the process if that exhausts it."""
    try:
        return work()
    except (MemoryError, RuntimeError) as error:
        if is_exhaustion(error):
            end()
        raise


def end_when_exhausted() -> None:
    """Let no thread of this process end without the others when memory runs out."""
    before = threading.excepthook

    def in_thread(failure: threading.ExceptHookArgs) -> None:
        if failure.exc_value is not None and is_exhaustion(failure.exc_value):
            end()
        before(failure)

    def in_main(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if is_exhaustion(error):
            end()
        sys.__excepthook__(kind, error, trace)

    threading.excepthook = in_thread
    sys.excepthook = in_main


#: A thread that has not taken its first step by then will not: even a busy machine gives it a turn before.
_LOOKS: Final = 30
#: A process that is stopped, and woken late, has missed one look alone, as its thread had no turn either.
_LOOK_SECONDS: Final = 1.0


class _Begun(threading.Event):
    """What `Thread.start` waits for, without a limit of its own."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; without a time of the caller's, end the process if it is not in ours."""
        if timeout is not None:
            return super().wait(timeout)
        if not any(super(_Begun, self).wait(_LOOK_SECONDS) for _ in range(_LOOKS)):
            end()
        return True


class BackgroundThread(threading.Thread):
    """Ends with the process; ends the process if the system has no thread for it, or no memory for its start.

    CPython (at least up to 3.13) creates the thread first, and lets it set up itself: if that fails, `start`
    does not learn of it.
    """

    def __init__(
        self, target: Callable[..., object], args: Iterable[Any] = (), name: str | None = None
    ) -> None:
        """Take what `threading.Thread` takes."""
        super().__init__(target=target, args=args, name=name, daemon=True)
        self._started = _Begun()

    def start(self) -> None:
        """Begin; the process ends if that exhausts it."""
        guarded(super().start)
