"""The processes that faults befall: the enforcer, and the inventory."""

from __future__ import annotations

from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil

from tests.processes import PROCESSES
from tools.faults import launcher


class Daemon:
    """A process that logs into a file."""

    def __init__(self, process: BaseProcess, log: Path) -> None:
        self._process = process
        self._log = log
        process.start()

    @property
    def said(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def stop(self) -> None:
        """SIGSTOP: it answers nobody, and keeps all that it has."""
        psutil.Process(self._process.pid).suspend()

    def wake(self) -> None:
        psutil.Process(self._process.pid).resume()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def end(self) -> None:
        self._process.terminate()
        self._process.join(30)
        assert self._process.exitcode == 0, self.said


def enforcer(folder: Path, configuration: Path) -> Daemon:
    """Start an enforcer; one that comes after another goes on in the same log."""
    log = folder / "enforcer.log"
    arguments = (log, folder / "points", folder / "set-back", ["run", "--config", str(configuration)])
    return Daemon(PROCESSES.Process(target=launcher.run_enforcer, args=arguments), log)


def inventory(folder: Path, configuration: Path) -> Daemon:
    log = folder / "inventory.log"
    arguments = (log, ["inventory", "run", "--config", str(configuration)])
    return Daemon(PROCESSES.Process(target=launcher.run_inventory, args=arguments), log)
