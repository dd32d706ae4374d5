"""Commands run as an administrator runs them, on a simulated engine over HTTP or on a state made of parts."""

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pytest

from ovirt_placement.cli.main import main
from ovirt_placement.model import Snapshot, state_file
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.control import Users
from ovirt_simulator.http.server import Application, Server, serve
from tests.builders import Part, snapshot
from tests.placement.cli.documents import plain

# -- A simulated engine over HTTP, and commands run on it as an administrator runs them.
PASSWORD = "password"


@dataclass
class LiveEngine:
    """An engine that runs, and the way to ask commands of it."""

    engine: Engine
    server: Server
    #: What changed something, or tried to: method and path.
    changes: list[str]
    config: Path
    capsys: pytest.CaptureFixture[str]
    _last: float = field(default_factory=time.monotonic)

    def run(self, status: int, *arguments: str) -> tuple[str, str]:
        """Run a command, in words or as it is typed; return what it printed, and its complaints.

        It must end with this status.
        """
        found, out, err = self.outcome(*arguments)
        assert found == status, out + err
        return out, err

    def data(self, status: int, *arguments: str) -> Any:
        return plain(self.run(status, *_with_options(_words(arguments), "--json"))[0])

    def outcome(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command; return its status, what it printed, and its complaints.

        The engine's clock keeps pace with ours, however slow the machine is.
        """
        now = time.monotonic()
        self.engine.advance(now - self._last)
        self._last = now
        self.capsys.readouterr()
        found = main(_with_options(_words(arguments), "--config", str(self.config)))
        printed = self.capsys.readouterr()
        return found, printed.out, printed.err


class Starting(Protocol):
    """Serves a state until the end of a `with`; takes what `live_engine` takes besides."""

    def __call__(self, state: Snapshot, **more: Any) -> AbstractContextManager[LiveEngine]: ...


def _words(arguments: Sequence[str]) -> Sequence[str]:
    return shlex.split(arguments[0]) if len(arguments) == 1 else arguments


def _with_options(arguments: Sequence[str], *options: str) -> list[str]:
    """Options go before "--", after which none is one."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return [*arguments[:at], *options, *arguments[at:]]


@contextmanager
def live_engine(
    state: Snapshot,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    clock: datetime | None = None,
    proxy: str | None = None,
    users: Users | None = None,
    username: str = "admin@internal",
    more: str = "",
    prepare: Callable[[Engine], object] = lambda engine: None,
) -> Iterator[LiveEngine]:
    """Serve a state; `more` goes into the configuration, `prepare` speaks to the engine first."""
    engine = Engine.from_snapshot(state, clock=clock or datetime.now(UTC), settings=PROMPT, proxy=proxy)
    prepare(engine)
    changes: list[str] = []
    _record(changes, monkeypatch)
    config = folder / "placement.toml"
    monkeypatch.setenv("OVIRT_PASSWORD", PASSWORD)
    with closing(serve(engine, users=users)) as server:
        config.write_text(
            f'[engine]\nurl = "{server.api_url}"\nusername = "{username}"\n'
            f'[inventory]\ndirectory = "{folder}/run"\n[store]\nurl = "sqlite:///{folder}/store.db"\n'
            # What a decision would go on without, on a machine that may be very busy.
            f"patience_seconds = 30.0\n{more}"
        )
        yield LiveEngine(engine, server, changes, config, capsys)


def _record(changes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Note each request to the API that is not a GET, and serve it as ever."""
    answer = Application._authenticated

    def noting(self: Application, request: Any, path: str) -> Any:
        if request.method != "GET":
            changes.append(f"{request.method} {path}")
        return answer(self, request, path)

    monkeypatch.setattr(Application, "_authenticated", noting)


# -- Commands about a state that is made of parts, run as an administrator runs them.
class StateAsking:
    """Runs a command on a state, whole or in parts, and gives what it printed."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys = folder, capsys
        #: What stands in the configuration.
        self.configuration = ""

    def run(self, status: int, command: str, *parts: Part | Snapshot) -> tuple[str, str]:
        """Run a command that must end with this status; what it printed, and its complaints."""
        state, config = self._folder / "state.json", self._folder / "placement.toml"
        (whole,) = parts if len(parts) == 1 and isinstance(parts[0], Snapshot) else (snapshot(*parts),)
        state.write_bytes(state_file.dumps(whole))
        config.write_text(self.configuration)
        words = [*command.split(), "--state", str(state), "--config", str(config)]
        self._capsys.readouterr()
        found = main(words)
        printed = self._capsys.readouterr()
        assert found == status, printed
        return printed.out, printed.err

    def text(self, status: int, command: str, *parts: Part | Snapshot) -> str:
        return "".join(self.run(status, command, *parts))

    def lines(self, status: int, command: str, *parts: Part | Snapshot) -> list[str]:
        """What is printed, without padding."""
        return [" ".join(line.split()) for line in self.text(status, command, *parts).splitlines()]

    def rows(self, status: int, command: str, *parts: Part | Snapshot) -> list[list[str]]:
        """The cells of the table's rows, below its title."""
        return [cells(line) for line in self.text(status, command, *parts).splitlines()[2:]]

    def verdicts(
        self, status: int, command: str, *parts: Part | Snapshot
    ) -> tuple[list[list[str]], list[str]]:
        """The rows of a table, and the lines below it after an empty one."""
        table, _, below = self.text(status, command, *parts).partition("\n\n")
        return [cells(line) for line in table.splitlines()[2:]], below.splitlines()

    def data(self, status: int, command: str, *parts: Part | Snapshot) -> Any:
        return plain(self.text(status, f"{command} --json", *parts))


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]
