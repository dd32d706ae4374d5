"""An enforcer as a process of its own, which gets a signal at a point, and what can be seen of it."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil

from tests.enforcer.launching import At, run_enforcer
from tests.processes import Forked


class EnforcerProcess(Forked):
    def __init__(
        self, folder: Path, name: str, configuration: Path, at: At, set_back: Path | None = None
    ) -> None:
        self._points = folder / f"{name}.points"
        main = partial(run_enforcer, self._points, at, set_back)
        super().__init__(main, ["run", "--config", str(configuration)], folder / f"{name}.log", os.environ)

    @property
    def said(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    @property
    def passed(self) -> list[str]:
        """The points that it has come by."""
        return self._points.read_text().splitlines() if self._points.exists() else []

    @property
    def killed(self) -> bool:
        return self.poll() == -signal.SIGKILL

    @property
    def stopped(self) -> bool:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).status() == psutil.STATUS_STOPPED
        return False

    @property
    def halted(self) -> bool:
        return self.killed or self.stopped

    def stop(self) -> None:
        self.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        super().kill()
        self.wait()
        self.stdout.close()
