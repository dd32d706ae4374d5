"""The process that a folder's workers are forked from, with the plugins loaded; and the workers."""

import contextlib
import faulthandler
import gc
import json
import logging
import os
import select
import signal
import socket
import sys
import time
import traceback
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from ovirt_scheduler_proxy.worker import contract, kernel
from ovirt_scheduler_proxy.worker.contract import reported, text_of

#: This many threads may units leave behind in a worker: each takes memory from the other units.
_MOST_THREADS = 8

#: Reports to units that a person asks, where it says "by hand": nothing follows from their answer.
_ASKED = "OVIRT_SCHEDULER_PROXY_ASKED"


@dataclass
class Settings:
    """What the zygote and its workers must know of their plugin folder."""

    folder: str
    #: Modules that are not to be imported before a fork, as an earlier process like this found out.
    left_out: list[str]
    #: Those of them that each worker imports for itself.
    late: list[str]
    #: Bytes that a worker may take beyond what it has after loading.
    memory_limit: int
    log_level: int
    #: What is imported, by name.
    modules: dict[str, ModuleType] = field(default_factory=dict)


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
        return kernel.pack(text, self.body + self.reasons, mark)


class Worker:
    """Serves the calls that come over one connection until that closes."""

    def __init__(self, settings: Settings, connection: socket.socket, stdout: int, stderr: int) -> None:
        self._settings = settings
        self._connection = connection
        self._pid = os.getpid()
        self._stdout = kernel.Capture(stdout, 1, kernel.STDOUT_LIMIT)
        self._stderr = kernel.Capture(stderr, 2, kernel.STDERR_LIMIT)
        self._import_errors: dict[str, str] = {}

    def run(self, eager: bool) -> None:
        """Never returns: a worker ends with its process."""
        self._prepare(eager)
        stream = self._connection.makefile("rb")
        self._connection.sendall(kernel.pack(b'{"ready": true}'))
        while (frame := kernel.receive(stream)) is not None:
            mark, head, body = frame
            reply = self._answer(json.loads(head), json.loads(body))
            self._connection.sendall(reply.packed(mark))
            self._repair()  # after the answer: the call waits no longer
        os._exit(0)

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
            self._settings.modules[name] = contract.load(self._settings.folder, name)
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
        reply.printed, reply.errors = reply.printed[: kernel.LOGGED], reply.errors[: kernel.LOGGED]
        return reply

    def _call(self, reply: Reply, call: dict[str, str], arguments: list[Any]) -> Any:
        self._import(call["module"])
        if call["module"] in self._import_errors:
            reply.fail("raised", f"could not be imported: {self._import_errors[call['module']]}")
            return None
        os.environ[_ASKED] = call.get("asked", "")
        try:
            unit = getattr(self._settings.modules[call["module"]], call["unit"])
            return getattr(unit(), contract.METHODS[call["kind"]][0])(*arguments)
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
                reply.body = contract.CHECKS[kind](result, hosts)
                reply.state_age_seconds = contract.state_age(result)
                reply.reasons = contract.reasons(result) if kind == "filter" else b""
        except contract.InvalidAnswer as invalid:
            reply.fail("invalid", str(invalid))
        except BaseException as error:  # whatever the unit makes of its own types
            reply.fail("invalid", f"its answer cannot be read: {reported(error)}")

    def _printed_answer(self, reply: Reply, kind: str) -> Any:
        result, rest = contract.find_answer(reply.printed, balance=kind == "balance")
        if result is contract.NOTHING and kind != "balance" and rest.strip():
            last = rest.strip().splitlines()[-1][:80]
            reply.fail("invalid", f"printed {last!r}, which is no answer")
        elif (result is None or result is contract.NOTHING) and kind != "balance":
            reply.fail("nothing", "neither returned nor printed an answer")
        reply.printed = rest
        return None if result is contract.NOTHING else result

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
        reply.retire = reply.retire or self._stderr.full or self._stdout.full
        if self._stdout.full:
            reply.fail("flood", f"printed more than {kernel.STDOUT_LIMIT >> 20} MiB")


def _says(error: BaseException, attribute: str) -> bool:
    """Whether a unit says more by the exception than that it failed.

    By `refuses` that no host may take the VM, by `awaits` that it is to be asked again in a moment.
    """
    try:
        return bool(getattr(error, attribute, False))
    except BaseException:
        return False


class Zygote:
    """Loads the folder once, then forks a worker for every request that comes over the control socket."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._workers: set[int] = set()
        self._pid = os.getpid()
        self._settings = Settings(**json.loads(control.recv(65536)))

    def load(self) -> None:
        """Load the folder's modules, and report to the proxy on each before and after.

        Ends the process after one that cannot be shared: the proxy starts another one without it.
        """
        folder = self._settings.folder
        os.chdir(folder)
        sys.path.insert(0, folder)
        # Python takes what it has compiled for as new as the file if both have one second and one size.
        sys.dont_write_bytecode = True
        # Plugins that fork while they are imported must not hold our only line to the proxy open.
        os.register_at_fork(after_in_child=self._control.close)
        for name in contract.module_names(folder):
            if name not in self._settings.left_out:
                self._load(folder, name)
        gc.collect()
        gc.freeze()
        self._report({"event": "loaded"})

    def _load(self, folder: str, name: str) -> None:
        self._report({"event": "loading", "module": name})
        module, report = contract.load_and_report(folder, name)
        signal.setitimer(signal.ITIMER_REAL, 0)
        shareable = not kernel.shares_badly(but=self._control.fileno())
        self._report({"event": "module", "shareable": shareable, **report})
        if not shareable:
            self.end_all()
            os._exit(0)
        if module is not None:
            self._settings.modules[name] = module

    def serve(self) -> None:
        """Fork workers and report their ends until the proxy closes the control socket."""
        deaths, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        while True:
            ready, _, _ = select.select([self._control.fileno(), deaths], [], [])
            if deaths in ready:
                os.read(deaths, 4096)
                self._reap()
            if self._control.fileno() in ready:
                wish = self._control.recv(64)
                if not wish:
                    return
                self._spawn(eager=wish == b"spawn eager")

    def end_all(self) -> None:
        """Kill every worker and all that their units started, and wait until none is left."""
        self._workers.clear()
        while kernel.has_children():
            for child in kernel.children():
                _kill(child)
            os.wait()

    def _spawn(self, eager: bool) -> None:
        """Fork a worker and hand its connection, its handle and what it writes of errors to the proxy."""
        child = None
        with contextlib.ExitStack() as held:
            try:
                ours, theirs = map(held.enter_context, socket.socketpair())
                stdout = kernel.create_memory("stdout", kernel.STDOUT_LIMIT)
                held.callback(os.close, stdout)
                stderr = kernel.create_memory("stderr", kernel.STDERR_LIMIT)
                held.callback(os.close, stderr)
                child = os.fork()
                if child == 0:
                    ours.close()
                    self._become_worker(theirs, stdout, stderr, eager)
                self._workers.add(child)
                handle = os.pidfd_open(child)
                held.callback(os.close, handle)
            except OSError as error:
                if child is not None:
                    _kill(child)
                self._report({"event": "refused", "error": str(error)})
                return
            message = json.dumps({"event": "spawned", "pid": child}).encode()
            socket.send_fds(self._control, [message], [ours.fileno(), handle, stderr])

    def end_with(self, parent: int) -> None:
        """End with the proxy at once, whatever is being loaded; nothing may then swallow an exception."""

        def end(*_: object) -> None:
            self.end_all()
            os._exit(1)

        signal.signal(kernel.PROXY_ENDED, end)
        kernel.end_with(parent, kernel.PROXY_ENDED)

    def _become_worker(self, connection: socket.socket, stdout: int, stderr: int, eager: bool) -> None:
        """The part of the process that is fresh from a fork. Never returns.

        An `eager` worker imports the late modules now, any other at the first call that needs them.
        """
        try:
            kernel.end_with(self._pid)
            os.setsid()
            kernel.adopt_orphans()
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR1):
                signal.signal(number, signal.SIG_DFL)
            # Should the machine run out of memory, a worker is easier to replace than anything else here.
            with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
                score.write("500")
            Worker(self._settings, connection, stdout, stderr).run(eager)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    def _reap(self) -> None:
        """Report the workers that ended, and end what they left behind: it has come to us as its adopter."""
        while True:
            try:
                child, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if child == 0:
                break
            if child in self._workers:
                self._workers.discard(child)
                self._report({"event": "ended", "pid": child, "status": os.waitstatus_to_exitcode(status)})
        for orphan in set(kernel.children()) - self._workers:
            _kill(orphan)

    def _report(self, event: dict[str, Any]) -> None:
        self._control.send(json.dumps(event).encode())


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def main(control: int, parent: int) -> None:
    """Serve the proxy, which is the process `parent`, until it closes the control socket or ends.

    `control` is the descriptor of that socket.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the proxy ends its zygote, by closing the control socket
    kernel.adopt_orphans()
    zygote = Zygote(socket.socket(fileno=control))
    zygote.end_with(parent)
    try:
        zygote.load()
        zygote.serve()
    except (BrokenPipeError, ConnectionResetError):
        pass  # the proxy has gone; so do we
    finally:
        zygote.end_all()
