"""The process that a folder's workers are forked from: single-threaded, with the plugins loaded."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import traceback
from typing import Any

from ovirt_scheduler_proxy.worker import kernel
from ovirt_scheduler_proxy.worker.kernel import STDERR_LIMIT, STDOUT_LIMIT, create_memory
from ovirt_scheduler_proxy.worker.loading import load_and_report, module_names

from . import serving


class Zygote:
    """Loads the folder once, then forks a worker for every request that comes over the control socket."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._workers: set[int] = set()
        self._pid = os.getpid()
        settings = json.loads(control.recv(65536))
        #: Modules that are not to be imported here, by what an earlier process of this kind went through.
        self._left_out = set(settings["left_out"])
        self._settings = serving.Settings(
            folder=settings["folder"],
            modules={},
            late=settings["late"],
            memory_limit=settings["memory_limit"],
            log_level=settings["log_level"],
        )

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
        for name in module_names(folder):
            if name not in self._left_out:
                self._load(folder, name)
        gc.collect()
        gc.freeze()
        self._report({"event": "loaded"})

    def _load(self, folder: str, name: str) -> None:
        self._report({"event": "loading", "module": name})
        module, report = load_and_report(folder, name)
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
        deaths = _pipe_of_signal(signal.SIGCHLD)
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
                stdout = _held(held, create_memory("stdout", STDOUT_LIMIT))
                stderr = _held(held, create_memory("stderr", STDERR_LIMIT))
                child = os.fork()
                if child == 0:
                    ours.close()
                    self._become_worker(theirs, stdout, stderr, eager)
                self._workers.add(child)
                handles = [ours.fileno(), _held(held, os.pidfd_open(child)), stderr]
            except OSError as error:
                if child is not None:
                    _kill(child)
                self._report({"event": "refused", "error": str(error)})
                return
            message = json.dumps({"event": "spawned", "pid": child}).encode()
            socket.send_fds(self._control, [message], handles)

    def end_with(self, parent: int) -> None:
        """End with the proxy at once, whatever is being loaded; nothing may then swallow an exception."""

        def end(*_: object) -> None:
            self.end_all()
            os._exit(1)

        signal.signal(kernel.PROXY_ENDED, end)
        kernel.end_with(parent, kernel.PROXY_ENDED)

    def _become_worker(self, connection: socket.socket, stdout: int, stderr: int, eager: bool) -> None:
        """The fork's part. Never returns."""
        try:
            kernel.end_with(self._pid)
            serving.start(self._settings, connection, stdout, stderr, eager)
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


def _pipe_of_signal(number: int) -> int:
    """A descriptor that becomes readable whenever the signal comes."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def _held(stack: contextlib.ExitStack, descriptor: int) -> int:
    """The descriptor, to be closed with the stack."""
    stack.callback(os.close, descriptor)
    return descriptor


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def main(control: socket.socket, parent: int) -> None:
    """Serve the proxy, which is the process `parent`, until it closes the control socket or ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the proxy ends its zygote, by closing the control socket
    kernel.adopt_orphans()
    zygote = Zygote(control)
    zygote.end_with(parent)
    try:
        zygote.load()
        zygote.serve()
    except (BrokenPipeError, ConnectionResetError):
        pass  # the proxy has gone; so do we
    finally:
        zygote.end_all()
