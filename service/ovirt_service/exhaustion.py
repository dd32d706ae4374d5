"""Ends a process that has run out of memory or threads: whatever it went on to do, it would do by half.

A service is started again by systemd; one that hangs on a thread which never began is not.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

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
