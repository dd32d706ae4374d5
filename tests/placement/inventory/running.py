"""Runs the inventory as the process that it is, against an engine that a test can change."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from ovirt_placement import config
from ovirt_placement.cli.main import main
from ovirt_placement.config import Config
from tests.configuration import write_configuration
from tests.placement.engine_server import EngineServer
from tests.processes import Forked

COMMAND = str(Path(sys.executable).with_name("ovirt-placement"))


def configured(folder: Path, engine: EngineServer, **settings: object) -> Path:
    """Write a configuration whose service asks by itself but rarely, so that a test decides when."""
    lines = "".join(f"{name} = {value}\n" for name, value in ({"interval_seconds": 60} | settings).items())
    return write_configuration(folder, engine.url, inventory=lines)


def loaded(file: Path) -> Config:
    return config.load(file, {})


class Service(subprocess.Popen[str]):
    """Started by a command line. It logs into a file: a pipe that nobody empties would hold it up."""

    def __init__(self, words: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self._log = log
        with log.open("w") as file:
            super().__init__(words, stdout=subprocess.PIPE, stderr=file, text=True, env=environment)

    @property
    def log(self) -> str:
        return self._log.read_text()


@contextmanager
def running(
    file: Path,
    ready: bool = True,
    command: Sequence[str] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Service | Forked]:
    """Start the service, wait until it is ready, and end it at the end if it still runs.

    It starts as quickly as it can, unless a command is given that is to start it.
    """
    with _started(file, command, {**os.environ, **environment}) as process:
        try:
            if ready:
                assert process.stdout is not None
                line = process.stdout.readline()
                directory = loaded(file).inventory.directory
                assert line == f"ovirt-placement: publishing to {directory}\n", process.log
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def _started(file: Path, command: Sequence[str], environment: Mapping[str, str]) -> Service | Forked:
    words, log = ("inventory", "run", "--config", str(file)), file.with_name("inventory.log")
    if command:
        return Service([*command, *words], log, environment)
    return Forked(main, words, log, environment)


def ended(process: Service | Forked) -> str:
    """End the service as an administrator does; return what it logged."""
    process.terminate()
    assert process.wait(timeout=30) == 0
    return process.log


def readings(engine: EngineServer) -> int:
    """Count how often the engine's topology was read."""
    return sum(request.startswith("/clusters") for request in engine.requests)


def polls(engine: EngineServer) -> int:
    """Count how often the engine was asked what has happened."""
    return sum(request.startswith("/events") for request in engine.requests)
