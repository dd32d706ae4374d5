"""The process of a command: it ends without a traceback, whatever happens, and begins threads.

Be it a mistake, Ctrl-C, a closed pipe or a full disk. Once it has run out of memory or threads it ends at
once: it would do by half all that it went on to do. A service is started again by systemd; one that hangs on
a thread which never began is not, as Python waits for it for ever.
"""

import atexit
import errno
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import ExitStack, redirect_stdout
from importlib import import_module
from types import TracebackType
from typing import Any, Final, TypeVar

from ovirt_service.errors import EXIT_STATUS, UserError
from ovirt_service.text import legible, one_line

_Result = TypeVar("_Result")

#: As shells report a process that a signal ended: SIGINT, and SIGPIPE.
INTERRUPTED = 128 + signal.SIGINT
PIPE_CLOSED = 128 + signal.SIGPIPE

#: What is to be closed at the end.
_closings: list[Callable[[], object]] = []

#: What keeps us from writing an answer, and is no fault of ours.
_CANNOT_WRITE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}

#: Garbage is looked for among this many new objects at once: of a state nearly all stay, and with Python's
#: 700 the search takes a fifth of all time.
_NEW_OBJECTS = 20_000


def start(module: str) -> int:
    """Import a command, the `main` of a module, and run it; Ctrl-C during the imports ends it as by default.

    At its end nothing is searched for garbage: the process goes with all of it, and what is to be closed is,
    also if a signal ends it, which its parent sees.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_NEW_OBJECTS)
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
    """Run a command; return its status, or another with at most one line that says what is wrong.

    What the terminal's encoding lacks is written as escapes: a name in another script is no mistake. What
    names hold can steer neither a terminal nor a later reader of a file.
    """
    with ExitStack() as held:
        stream = sys.stdout or held.enter_context(open(os.devnull, "w"))  # None where it was closed
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
        held.enter_context(redirect_stdout(legible(stream, styled=stream.isatty())))
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
    while _closings:
        _closings.pop()()


os.register_at_fork(after_in_child=_forget)


def complain(command: str, text: str) -> None:
    print(f"{command}: {one_line(' '.join(text.split()))}", file=sys.stderr)


def _guarded(command: str, run: Callable[[], int]) -> int:
    _end_when_exhausted()
    try:
        status = end_if_exhausted(run)
        sys.stdout.flush()
    except UserError as error:
        complain(command, str(error))
        return EXIT_STATUS
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


def _write_no_more() -> None:
    """The reader of our output has gone: Python must not complain at its end either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


#: Made before there is no memory left to make it.
_LINE = b"out of memory, or of threads: ends, as nothing can be relied on any more\n"
#: What Python says where no thread begins; it has no type of its own.
_NO_THREAD = "can't start new thread"


def _is_exhaustion(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and _NO_THREAD in str(error))


def _end_process() -> None:
    """End the process at once: nothing that would be tidied up can be relied on."""
    os.write(2, _LINE)
    os._exit(EXIT_STATUS)


def end_if_exhausted(work: Callable[[], _Result]) -> _Result:
    """Work; end the process if that exhausts it."""
    try:
        return work()
    except (MemoryError, RuntimeError) as error:
        if _is_exhaustion(error):
            _end_process()
        raise


def _end_when_exhausted() -> None:
    """Let no thread of this process end without the others when memory runs out."""
    before = threading.excepthook

    def in_thread(failure: threading.ExceptHookArgs) -> None:
        if failure.exc_value is not None and _is_exhaustion(failure.exc_value):
            _end_process()
        before(failure)

    def in_main(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if _is_exhaustion(error):
            _end_process()
        sys.__excepthook__(kind, error, trace)

    threading.excepthook = in_thread
    sys.excepthook = in_main


#: A thread that has not taken its first step by then will not: even a busy machine gives it a turn before.
_POLLS: Final = 30
#: A process that is stopped, and woken late, has missed one look alone, as its thread had no turn either.
_POLL_SECONDS: Final = 1.0


class _Begun(threading.Event):
    """What `Thread.start` waits for, without a limit of its own."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; without a time of the caller's, end the process if it is not in ours."""
        if timeout is not None:
            return super().wait(timeout)
        if not any(super(_Begun, self).wait(_POLL_SECONDS) for _ in range(_POLLS)):
            _end_process()
        return True


class BackgroundThread(threading.Thread):
    """Ends with the process; ends the process if the system has no thread for it, or no memory for its start.

    CPython (at least up to 3.13) creates the thread first, and lets it set up itself: if that fails, `start`
    does not learn of it.
    """

    def __init__(
        self, target: Callable[..., object], args: Iterable[Any] = (), name: str | None = None
    ) -> None:
        super().__init__(target=target, args=args, name=name, daemon=True)
        self._started = _Begun()

    def start(self) -> None:
        end_if_exhausted(super().start)


def in_background(work: Callable[[], _Result], name: str | None = None) -> Future[_Result]:
    """Work in such a thread; what becomes of it, or raises, is the future's."""
    future: Future[_Result] = Future()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = end_if_exhausted(work)
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    BackgroundThread(run, name=name).start()
    return future
