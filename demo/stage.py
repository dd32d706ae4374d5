"""What demonstrations run: a simulated engine, our services and the page, on free ports of this machine.

Real processes: each is awaited by its readiness line, and all are ended again.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from rich.text import Text

from ovirt_placement.model import Snapshot, state_file
from tests.configuration import write_configuration, write_password

#: Columns of a terminal, and of the story.
WIDTH = 100
#: Seconds that a process may take to be ready, or to end after SIGTERM.
PATIENCE_SECONDS = 120


class ProcessFailed(Exception):
    """A process ended or stayed silent; the text carries the end of its log."""


class Processes:
    """The commands of this project, each as a process of its own; all end with the `with` block."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.environment = {**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})}
        self._running: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in reversed(list(self._running)):
            self.stop(name)

    def start(self, name: str, arguments: Sequence[str]) -> str:
        """Start `arguments` and return its first line of output, which says that it is ready.

        Raises `ProcessFailed` when it ends first or is not ready in time.
        """
        with self.log(name).open("w") as log:
            process = subprocess.Popen(
                command(arguments), stdout=subprocess.PIPE, stderr=log, env=self.environment, text=True
            )
        self._running[name] = process
        assert process.stdout is not None  # noqa: S101 - Popen was asked for a pipe
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(PATIENCE_SECONDS):
                raise ProcessFailed(self._last_words(name, f"was not ready after {PATIENCE_SECONDS} s"))
        line = process.stdout.readline().strip()
        if not line:
            raise ProcessFailed(self._last_words(name, f"ended with status {process.wait()}"))
        return line

    def run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, on a terminal of `WIDTH` columns; the output is without colours."""
        terminal, its_end = os.openpty()
        with tempfile.TemporaryFile("w+") as errors, os.fdopen(terminal, "rb", buffering=0) as screen:
            environment = {**self.environment, "COLUMNS": str(WIDTH), "TERM": "xterm"}
            process = subprocess.Popen(
                command(arguments), stdin=subprocess.DEVNULL, stdout=its_end, stderr=errors, env=environment
            )
            os.close(its_end)
            late = threading.Timer(PATIENCE_SECONDS, process.kill)
            late.start()
            shown = bytearray()
            with contextlib.suppress(OSError):  # so Linux reports the end of what is written to a terminal
                while part := screen.read(65536):
                    shown += part
            status = process.wait()
            late.cancel()
            errors.seek(0)
            output = Text.from_ansi(shown.decode().replace("\r\n", "\n")).plain
            return subprocess.CompletedProcess(process.args, status, output, errors.read())

    def stop(self, name: str) -> int:
        """End one process with SIGTERM, by force if it does not listen, and return its exit status."""
        process = self._running.pop(name)
        process.terminate()
        try:
            return process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        finally:
            if process.stdout:
                process.stdout.close()

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def check(self) -> None:
        """Raise `ProcessFailed` when any process has ended by itself."""
        for name, process in self._running.items():
            if process.poll() is not None:
                raise ProcessFailed(self._last_words(name, f"ended with status {process.returncode}"))

    def _last_words(self, name: str, what: str) -> str:
        lines = self.log(name).read_text().splitlines()[-20:]
        return "\n".join([f"{name} {what}; the end of its log:", *lines])


def command(arguments: Sequence[str]) -> list[str]:
    """The installed command next to this interpreter, so that no PATH is needed."""
    return [str(Path(sys.executable).parent / arguments[0]), *arguments[1:]]


def address(ready_line: str) -> str:
    """The URL at the end of a readiness line."""
    return ready_line.rsplit(" ", 1)[-1]


# -- One demonstration: its engine, its configuration, its folder.
PASSWORD = "demo"  # noqa: S105 - a throw-away engine on loopback
USER = "admin@internal"
#: Simulated seconds a second: a migration takes a moment instead of half a minute.
TIME_SCALE = 20


class Stage:
    """The processes of one demonstration, and what they are configured by."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.state = folder / "state.json"
        self.configuration = folder / "ovirt-placement.toml"
        self.processes = Processes(folder, {"OVIRT_PLACEMENT_CONFIG": str(self.configuration)})
        self.store = f"sqlite:///{folder}/store.db"
        self.url = ""
        self.seed = seed

    def configure(self, mode: str, url: str = "") -> None:
        """Write the configuration, for the engine at this address, else the one that runs."""
        write_configuration(
            self.folder,
            f"{url or self.url}/ovirt-engine/api",
            name=self.configuration.name,
            user=USER,
            inventory="interval_seconds = 0.5",
            store_url=self.store,
            more=f'[enforcer]\nmode = "{mode}"\ninterval_seconds = 1\n[web]\nlisten = "127.0.0.1:0"\n',
        )
        write_password(self.folder, PASSWORD)

    def start_engine(self, state: Snapshot, *, proxy: str = "", time_scale: float = TIME_SCALE) -> None:
        """Start a simulated engine in this state, which asks the proxy if there is one."""
        self.state.write_bytes(state_file.dumps(state))
        self.url = self.start(
            "ovirt-simulator", "run", "--state", str(self.state), "--listen", "127.0.0.1:0",
            "--time-scale", str(time_scale), "--password", PASSWORD, "--seed", str(self.seed),
            *(("--proxy", proxy) if proxy else ()),
        )  # fmt: skip

    def start_all(self, state: Snapshot, mode: str, *, time_scale: float = TIME_SCALE) -> str:
        """Start an engine in this state and all that works with it but the proxy; return the page's URL."""
        self.start_engine(state, time_scale=time_scale)
        self.configure(mode)
        self.start("ovirt-placement", "inventory", "run")
        page = self.start("ovirt-placement-web", "run")
        self.start("ovirt-enforcer", "run")
        return page

    def start(self, *arguments: str) -> str:
        """Start a command, and return its address."""
        return address(self.processes.start(arguments[0], arguments))


def page_text(url: str) -> str:
    """Where the page is, and how to log in, in a line."""
    return f"The page: {url} (log in as {USER} with the password {PASSWORD})"


def demonstrate(command: str, show: Callable[[Path], None], *, interrupted: int = 0) -> int:
    """Show something in a folder of its own, which is removed then; its exit status.

    It is ended by Ctrl-C or SIGTERM, with the status `interrupted`.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix=f"ovirt-placement-{command.split()[-1]}-") as folder:
            show(Path(folder))
    except ProcessFailed as failure:
        print(f"{command}: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return interrupted
    return 0
