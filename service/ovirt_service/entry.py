"""Runs a command without tracebacks: for a mistake, Ctrl-C, a closed pipe or a full disk."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib import import_module
from typing import TextIO

from ovirt_service.errors import EXIT_STATUS, UserError
from ovirt_service.text.legible import legible, one_line
from ovirt_service.threads import end, end_when_exhausted, is_exhaustion

#: As shells report a process that a signal ended: SIGINT, and SIGPIPE.
INTERRUPTED = 128 + signal.SIGINT
PIPE_CLOSED = 128 + signal.SIGPIPE

#: What is to be closed at the end.
_closings: list[Callable[[], object]] = []

#: What keeps us from writing an answer, and is no fault of ours.
_CANNOT_WRITE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def start(module: str) -> int:
    """Import a command, the `main` of a module, and run it; Ctrl-C during the imports ends it as by default.

    At its end nothing is searched for garbage: the process goes with all of it, and what is to be closed is,
    also if a signal ends it, which its parent sees.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    main: Callable[[], int] = import_module(module).main
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in _ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end_by_signal)
    try:
        return main()
    except _Ended as ended:
        (number,) = ended.args
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return 128 + int(number)
    finally:
        gc.freeze()


class _Ended(BaseException):
    """A signal ends the process: what is open is closed first."""


_ENDING = (signal.SIGTERM, signal.SIGHUP)


def _end_by_signal(number: int, frame: object) -> None:
    raise _Ended(number)


def _forget() -> None:
    """What the parent has open is no child's to close."""
    _closings.clear()
    for number in _ENDING:
        if signal.getsignal(number) is _end_by_signal:
            signal.signal(number, signal.SIG_DFL)


def guarded(command: str, run: Callable[[], int]) -> int:
    """Run a command; return its status, or another with at most one line that says what is wrong."""
    _take_all_characters(sys.stdout)
    with redirect_stdout(_shown(sys.stdout)):
        try:
            return _guarded(command, run)
        finally:
            close_all()


def at_end(close: Callable[[], object]) -> None:
    """Have something closed once, at the end of the command, or of the process where none runs.

    Python 3.12.0 and 3.12.1 begin no thread at the end of the process.
    """
    if close not in _closings:
        _closings.append(close)


@atexit.register
def close_all() -> None:
    """Close what is to be closed at the end."""
    while _closings:
        _closings.pop()()


os.register_at_fork(after_in_child=_forget)


def complain(command: str, text: str) -> None:
    print(f"{command}: {one_line(' '.join(text.split()))}", file=sys.stderr)


def _guarded(command: str, run: Callable[[], int]) -> int:
    end_when_exhausted()
    try:
        status = run()
        if sys.stdout is not None:
            sys.stdout.flush()
    except UserError as error:
        complain(command, str(error))
        return EXIT_STATUS
    except (MemoryError, RuntimeError) as error:
        if is_exhaustion(error):
            end()
        raise
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _write_no_more()
        return PIPE_CLOSED
    except OSError as error:
        if error.filename is not None or error.errno not in _CANNOT_WRITE:
            raise
        _write_no_more()
        complain(command, f"cannot write the answer: {error.strerror}")
        return EXIT_STATUS
    return status


def _shown(stream: TextIO | None) -> TextIO | None:
    """What names hold can steer neither a terminal nor a later reader of a file."""
    return None if stream is None else legible(stream, styled=stream.isatty())


def _take_all_characters(stream: TextIO | None) -> None:
    """Write what the terminal's encoding lacks as escapes; a name in another script is no mistake."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _write_no_more() -> None:
    """The reader of our output has gone: Python must not complain at its end either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
