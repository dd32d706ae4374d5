"""Runs commands in processes that have their imports already: forks of one that has loaded all of them.

An interpreter that starts loads them for half a second, and hundreds of tests want a process. Whether the
installed commands start is for those tests to say that start them by their names.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Self

#: The server from which its processes are forked is started once, and loads what any of them needs.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "ovirt_enforcer.service.process",
        "ovirt_placement.cli.state",
        "ovirt_placement.inventory.service.service",
        "ovirt_scheduler_proxy.plugins",
        "ovirt_scheduler_proxy.service",
        "ovirt_simulator.cli",
        "sqlalchemy.dialects.sqlite",
        "tests.enforcer.launching",
    ]
)

Main = Callable[[Sequence[str]], int]


class Forked:
    """A command that runs, with what tests use of `subprocess.Popen`; it complains into a file."""

    def __init__(self, main: Main, words: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        read, written = PROCESSES.Pipe(duplex=False)
        with read, written:
            arguments = (main, tuple(words), written, log, dict(environment))
            self._process = PROCESSES.Process(target=_be, args=arguments)
            self._process.start()
            self.stdout = os.fdopen(os.dup(read.fileno()))
        assert self._process.pid is not None
        self.pid = self._process.pid
        self._log = log

    @property
    def log(self) -> str:
        """What it has complained so far."""
        return self._log.read_text()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stdout.close()
        if error is not None:
            self.kill()  # a test that has failed may not have ended it
        self.wait()

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(str(self._process), timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """End it as systemd does, which it obeys."""
        self.terminate()
        assert self.wait(30) == 0, self.log

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@contextmanager
def acting(target: Callable[..., None], *arguments: object) -> Iterator[None]:
    """Have a process do something until the block ends."""
    process = PROCESSES.Process(target=target, args=arguments, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def completed(
    main: Main, words: Sequence[str], log: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    with Forked(main, words, log, environment) as process:
        printed = process.stdout.read()
        return subprocess.CompletedProcess(words, process.wait(60), printed, log.read_text())


def _be(
    main: Main, words: Sequence[str], output: Connection, log: Path, environment: Mapping[str, str]
) -> None:
    """Be the command, from the streams to the exit status."""
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(output.fileno(), 1)
    output.close()
    complaints = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(complaints, 2)
    os.close(complaints)
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    complaining = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = complaining  # type: ignore[misc]
    sys.exit(main(words))
