"""An enforcer as a process of its own, which gets a signal at a point, and what can be seen of it."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path

import psutil

from tests.enforcer import launching
from tests.enforcer.launching import At
from tests.processes import PROCESSES


class EnforcerProcess:
    def __init__(
        self, folder: Path, name: str, configuration: Path, at: At, set_back: Path | None = None
    ) -> None:
        """One that comes after another of its name goes on in the same log."""
        self._log, self._points = folder / f"{name}.log", folder / f"{name}.points"
        arguments = ["run", "--config", str(configuration)]
        self._process = PROCESSES.Process(
            target=launching.run_enforcer, args=(self._log, self._points, at, set_back, arguments)
        )
        self._process.start()

    @property
    def said(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    @property
    def passed(self) -> list[str]:
        """The points that it has come by."""
        return self._points.read_text().splitlines() if self._points.exists() else []

    @property
    def killed(self) -> bool:
        return self._process.exitcode == -signal.SIGKILL

    @property
    def stopped(self) -> bool:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self._process.pid).status() == psutil.STATUS_STOPPED
        return False

    @property
    def halted(self) -> bool:
        return self.killed or self.stopped

    def stop(self) -> None:
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process.pid is not None
        psutil.Process(self._process.pid).send_signal(number)

    def end(self) -> None:
        self._process.terminate()
        self._process.join(30)
        assert self._process.exitcode == 0, self.said

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
