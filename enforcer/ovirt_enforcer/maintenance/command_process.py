"""The process in which a command of the administrator runs: a script, which starts in milliseconds.

It adopts whatever the command starts, so that nothing outlives the command, its bound, or the enforcer. The
enforcer holds the other end of standard input, and writes until when it leads: one that stands still for
longer leads no more, and another one goes on without its command. The end of the input is the order to end
the command. What the command prints goes to standard output, and how it ended, as JSON, to standard error.
It holds the other end of that output, too, and never reads it: a command that prints as it tidies up is not
killed by that, though the enforcer is gone.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from functools import partial

#: After SIGTERM the command and its descendants have so long before they are killed, in seconds.
_GRACE_SECONDS = 2.0
#: How soon it is noticed, while they are ended, that one was adopted.
_ENDING_SECONDS = 0.05
#: How soon it is noticed that the machine was suspended.
_LISTENING_SECONDS = 1.0
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_NOT_STARTED = 127

_libc = ctypes.CDLL(None)


class CommandProcess:
    """A command, from its start until nothing of it is left."""

    def __init__(self, words: list[str], seconds: float, leads_until: float) -> None:
        """Start it; the enforcer leads until this moment of the boot clock.

        Raises `OSError`, and `ValueError` for words that no program can be given.
        """
        self._seconds = seconds
        self._leads_until = leads_until
        self._began = time.monotonic()
        # Before the command is there: a signal in between ends it too.
        self._signals, wakes = os.pipe()
        os.set_blocking(self._signals, False)
        os.set_blocking(wakes, False)
        signal.set_wakeup_fd(wakes)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._stop())
        self._open = {0, self._signals}
        os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)  # held until this ends, and never read
        self._command = subprocess.Popen(  # noqa: S603 - the command from the enforcer's configuration
            words,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=partial(_die_with_parent, os.getpid()),
        )
        self._status: int | None = None
        #: Why it is ended before its time, when what is left of it is killed, and which processes know.
        self._interrupted = ""
        self._kill_at: float | None = None
        self._asked: set[int] = set()

    def run(self) -> None:
        while self._something_left():
            now = time.monotonic()
            if self._kill_at is None and self._is_over(now):
                # Another enforcer waits for nothing of ours.
                self._kill_at = now + (_GRACE_SECONDS if self._lead_seconds() > 0 else 0.0)
            if self._kill_at is not None:
                if now > self._kill_at + _GRACE_SECONDS:
                    break  # the kernel does not end it
                self._end_command(kill=now >= self._kill_at)
            self._listen(now)
        _report(status=self._status, interrupted=self._interrupted)

    def _stop(self) -> None:
        self._open.discard(0)

    def _something_left(self) -> bool:
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._command.pid:
                    self._status = self._command.returncode = os.waitstatus_to_exitcode(ended[1])
        except ChildProcessError:
            return False
        return True

    def _is_over(self, now: float) -> bool:
        """Whether it has ended, or is to end; why, if that is before its time."""
        if self._status is None and 0 not in self._open:
            self._interrupted = "was stopped"
        elif self._status is None and now - self._began >= self._seconds:
            self._interrupted = f"was ended after {self._seconds:g} s"
        elif self._status is None and self._lead_seconds() <= 0:
            self._interrupted = "was ended, since the enforcer that had begun it stood still and led no more"
        return self._status is not None or bool(self._interrupted)

    def _lead_seconds(self) -> float:
        """How long the enforcer that began it leads, if it does nothing more; not more than 0 if not now."""
        return self._leads_until - time.clock_gettime(time.CLOCK_BOOTTIME)

    def _end_command(self, *, kill: bool) -> None:
        """Signal its process group once, and what has left that and was adopted; kill what is left then."""
        group = -self._command.pid
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as children:
            for one in (group, *map(int, children.read().split())):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    if kill or one not in self._asked:
                        os.kill(one, signal.SIGKILL if kill else signal.SIGTERM)
                self._asked.add(one)

    def _listen(self, now: float) -> None:
        """Wait for a word of the enforcer, an end, or the next moment that counts."""
        left = max(0.0, min(self._began + self._seconds - now, self._lead_seconds(), _LISTENING_SECONDS))
        wait = _ENDING_SECONDS if self._kill_at is not None else left
        ready, _, _ = select.select(self._open, [], [], wait)
        if self._signals in ready:
            os.read(self._signals, 64)
        if 0 in ready:
            moments = os.read(0, 1 << 12)
            if moments:
                (self._leads_until,) = struct.unpack("d", moments[-8:])
            else:
                self._stop()


def _die_with_parent(parent: int) -> None:
    """Also where it was gone before the kernel was asked: then no signal would come."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(_NOT_STARTED)


def _report(**facts: object) -> None:
    """Unless the enforcer is gone."""
    with contextlib.suppress(OSError):
        os.write(2, json.dumps(facts, ensure_ascii=False).encode(errors="replace"))


def main(seconds: float, leads_until: float, words: list[str]) -> None:
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        command = CommandProcess(words, seconds, leads_until)
    except (OSError, ValueError) as error:
        _report(text=str(error), status=_NOT_STARTED, interrupted="")
    else:
        command.run()


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]), sys.argv[3:])
