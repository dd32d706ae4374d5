"""What tests of the enforcer's rooms share: an engine behind a server, a store, and commands."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from ovirt_enforcer.cli.main import main as enforcer
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server, serve
from tests.configuration import write_configuration
from tests.placement.cli.documents import defined
from tests.placement.store.conftest import asked as asked
from tests.placement.store.conftest import opening as opening
from tests.processes import Main
from tests.scenarios.stage import START


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Engine:
    """One with the `STATE` of the test's own file."""
    return Engine.from_snapshot(request.module.STATE, clock=START, settings=PROMPT)


@pytest.fixture
def server(engine: Engine) -> Iterator[Server]:
    """Serves the engine of the test's own file."""
    running = serve(engine)
    yield running
    running.close()


@pytest.fixture
def file(server: Server, tmp_path: Path) -> Path:
    """A configuration for that engine, and a store in the test's own folder."""
    return write_configuration(tmp_path, server.api_url)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Of the store that such a configuration names."""
    return f"sqlite:///{tmp_path}/store.db"


class Said(NamedTuple):
    """How a command has ended, and what it has printed."""

    status: int
    out: str
    err: str = ""

    def document(self, definition: str) -> Any:
        return defined(self.out, definition)


class Ask(Protocol):
    def __call__(self, line: str, *, of: Main = enforcer) -> Said: ...


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs a command in this process; unless it names a state, with the configuration of the folder."""

    def run(line: str, *, of: Main = enforcer) -> Said:
        words = shlex.split(line)
        if "--state" not in words:
            words += ["--config", str(tmp_path / "placement.toml")]
        capsys.readouterr()
        try:
            status = of(words)
        except SystemExit as end:
            status = int(end.code or 0)
        return Said(status, *capsys.readouterr())

    return run
