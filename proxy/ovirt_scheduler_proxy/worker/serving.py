"""A worker: one process that runs one unit at a time, as long as nothing goes wrong in it."""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import json
import logging
import os
import signal
import socket
import sys
import time
import traceback
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from ovirt_scheduler_proxy.worker import answers, kernel
from ovirt_scheduler_proxy.worker.answers import reported, text_of
from ovirt_scheduler_proxy.worker.kernel import LOGGED, STDERR_LIMIT, STDOUT_LIMIT, Capture
from ovirt_scheduler_proxy.worker.loading import METHODS, load

from . import frames

#: This many threads may units leave behind in a worker: each takes memory from the other units.
_MOST_THREADS = 8

_CHECKS = {"filter": answers.filter_answer, "score": answers.score_answer, "balance": answers.balance_answer}

#: Reports to units that a person asks, where it says "by hand": nothing follows from their answer.
_ASKED = "OVIRT_SCHEDULER_PROXY_ASKED"


@dataclass
class Settings:
    """What a worker must know of its plugin folder."""

    folder: str
    modules: dict[str, ModuleType]
    #: Modules that cannot be shared through a fork; each worker imports them for itself.
    late: list[str]
    #: Bytes that a worker may take beyond what it has after loading.
    memory_limit: int
    log_level: int


@dataclass
class Reply:
    """What goes back to the proxy about one call of a unit: see `processes.Outcome`."""

    #: Cause and sentence.
    failure: dict[str, str] | None = None
    printed: str = ""
    errors: str = ""
    seconds: float = 0.0
    state_age_seconds: float | None = None
    reasons: bytes = field(default=b"", repr=False)
    retire: bool = False
    body: bytes = field(default=b"", repr=False)

    def fail(self, cause: str, sentence: str) -> None:
        self.failure, self.body, self.reasons = {"cause": cause, "sentence": sentence}, b"", b""

    def packed(self, mark: int) -> bytes:
        head = {name: value for name, value in vars(self).items() if name not in ("body", "reasons")}
        head["reasons_size"] = len(self.reasons)
        # Halves of characters, which Python's text may hold and JSON may not, become question marks.
        text = json.dumps(head, ensure_ascii=False).encode("utf-8", "replace")
        return frames.pack(text, self.body + self.reasons, mark)


class Worker:
    """Serves the calls that come over one connection until that closes."""

    def __init__(self, settings: Settings, connection: socket.socket, stdout: int, stderr: int) -> None:
        self._settings = settings
        self._connection = connection
        self._pid = os.getpid()
        self._stdout = Capture(stdout, 1, STDOUT_LIMIT)
        self._stderr = Capture(stderr, 2, STDERR_LIMIT)
        self._import_errors: dict[str, str] = {}

    def run(self, eager: bool) -> None:
        """Never returns: a worker ends with its process."""
        self._prepare(eager)
        self._connection.sendall(frames.pack(b'{"ready": true}'))
        while True:
            frame = frames.receive(self._connection)
            if frame is None:
                os._exit(0)
            mark, head, body = frame
            reply = self._answer(_decode_call(head), json.loads(body))
            self._connection.sendall(reply.packed(mark))
            self._repair()  # after the answer: the call waits no longer

    def _prepare(self, eager: bool) -> None:
        self._repair()
        faulthandler.enable(self._stderr.stream)
        logging.basicConfig(level=self._settings.log_level, format="%(levelname)s %(name)s: %(message)s")
        if eager:
            for name in self._settings.late:
                self._import(name)
        kernel.limit_memory(self._settings.memory_limit)
        self._threads = kernel.threads()

    def _import(self, name: str) -> None:
        """Import a module that is not there yet, unless that has failed before."""
        if name in self._settings.modules or name in self._import_errors:
            return
        try:
            self._settings.modules[name] = load(self._settings.folder, name)
        except BaseException as error:
            self._import_errors[name] = reported(error)

    def _answer(self, call: dict[str, str], arguments: list[Any]) -> Reply:
        reply = Reply()
        hosts = tuple(arguments[0])
        self._stdout.begin()
        self._stderr.begin()
        started = time.perf_counter()
        result = self._call(reply, call, arguments)
        reply.seconds = time.perf_counter() - started
        if os.getpid() != self._pid:
            os._exit(0)  # the unit forked and its child came back here: only the worker itself may answer
        self._end_capture(reply)
        if reply.failure is None:
            self._check(reply, call["kind"], result, hosts)
        if kernel.has_children() or kernel.threads() > self._threads + _MOST_THREADS:
            reply.retire = True
        reply.printed, reply.errors = reply.printed[:LOGGED], reply.errors[:LOGGED]
        return reply

    def _call(self, reply: Reply, call: dict[str, str], arguments: list[Any]) -> Any:
        self._import(call["module"])
        if call["module"] in self._import_errors:
            reply.fail("raised", f"could not be imported: {self._import_errors[call['module']]}")
            return None
        os.environ[_ASKED] = call.get("asked", "")
        try:
            unit = getattr(self._settings.modules[call["module"]], call["unit"])
            return getattr(unit(), METHODS[call["kind"]][0])(*arguments)
        except SystemExit as error:
            reply.fail("exited", f"called sys.exit({'' if error.code is None else text_of(error)})")
        except MemoryError:
            reply.retire = True
            reply.fail("memory", "needed more memory than its limit allows")
        except BaseException as error:
            if call["kind"] == "filter" and _says(error, "refuses"):
                reply.fail("refused", f"refuses the VM: {text_of(error)}")
            elif _says(error, "awaits"):
                reply.fail("awaited", f"raised {reported(error)}")
            else:
                reply.fail("raised", f"raised {reported(error)}")
                if not hasattr(error, "awaits"):  # who says whether it awaits something knows why it fails
                    with contextlib.suppress(BaseException):  # there may be no room for it, or no end to it
                        traceback.print_exc()
        return None

    def _check(self, reply: Reply, kind: str, result: Any, hosts: tuple[str, ...]) -> None:
        """Find the answer, returned or else printed, and bring it into its final form."""
        try:
            if result is not None:
                if reply.printed and reply.printed.strip() == repr(result):
                    reply.printed = ""  # plugins that also serve the old proxy print what they return
            else:
                result = self._printed_answer(reply, kind)
            if reply.failure is None:
                reply.body = _CHECKS[kind](result, hosts)
                reply.state_age_seconds = answers.state_age(result)
                reply.reasons = answers.reasons(result) if kind == "filter" else b""
        except answers.InvalidAnswer as invalid:
            reply.fail("invalid", str(invalid))
        except BaseException as error:  # whatever the unit makes of its own types
            reply.fail("invalid", f"its answer cannot be read: {reported(error)}")

    def _printed_answer(self, reply: Reply, kind: str) -> Any:
        result, rest = answers.find_answer(reply.printed, balance=kind == "balance")
        if result is answers.NOTHING and kind != "balance" and rest.strip():
            last = rest.strip().splitlines()[-1][:80]
            reply.fail("invalid", f"printed {last!r}, which is no answer")
        elif (result is None or result is answers.NOTHING) and kind != "balance":
            reply.fail("nothing", "neither returned nor printed an answer")
        reply.printed = rest
        return None if result is answers.NOTHING else result

    def _repair(self) -> None:
        """Make ready for the next call, whatever the last one has left."""
        with contextlib.suppress(OSError):  # a folder that is gone costs no unit that is loaded
            os.chdir(self._settings.folder)
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._stdout.repair()
        self._stderr.repair()
        sys.stdout = sys.__stdout__ = self._stdout.stream  # type: ignore[misc]  # typeshed calls it final
        sys.stderr = sys.__stderr__ = self._stderr.stream  # type: ignore[misc]

    def _end_capture(self, reply: Reply) -> None:
        for stream in (sys.stdout, sys.stderr):  # a unit may have put others in place of ours
            with contextlib.suppress(BaseException):
                stream.flush()
        reply.printed, reply.errors = self._stdout.end(), self._stderr.end()
        if self._stderr.full:
            reply.retire = True
        if self._stdout.full:
            reply.retire = True
            reply.fail("flood", f"printed more than {STDOUT_LIMIT >> 20} MiB")


def start(settings: Settings, connection: socket.socket, stdout: int, stderr: int, eager: bool) -> None:
    """Turn the calling process, fresh from a fork, into a worker. Never returns.

    An `eager` one imports the late modules now, any other at the first call that needs them.
    """
    os.setsid()
    kernel.adopt_orphans()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)
    # Should the machine run out of memory, a worker is easier to replace than anything else here.
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("500")
    Worker(settings, connection, stdout, stderr).run(eager)


@functools.cache
def _decode_call(head: bytes) -> dict[str, str]:
    """The head of a request: always the same few, which name the units."""
    call: dict[str, str] = json.loads(head)
    return call


def _says(error: BaseException, attribute: str) -> bool:
    """Whether a unit says more by the exception than that it failed.

    By `refuses` that no host may take the VM, by `awaits` that it is to be asked again in a moment.
    """
    try:
        return bool(getattr(error, attribute, False))
    except BaseException:
        return False
