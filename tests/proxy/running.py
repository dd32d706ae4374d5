"""Runs the proxy as a process of its own, the way systemd does, and speaks to it."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import xmlrpc.client
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from ovirt_scheduler_proxy.cli import main
from tests.pages import Sample, samples
from tests.processes import Forked, completed

COMMAND = [sys.executable, "-m", "ovirt_scheduler_proxy.cli"]
AT_ONCE = "\n[calls]\ndiscovery_seconds = 0\n"
PREFIX = "ovirt_scheduler_proxy_"
READY = "ovirt-scheduler-proxy: listening on "


class RunningProxy:
    """A proxy that answers at `url`; what it logs stands in `log`."""

    def __init__(self, process: subprocess.Popen[str] | Forked, log: Path) -> None:
        self.process = process
        self._over = False
        self._log: Path | str = log
        line = process.stdout.readline() if process.stdout else ""
        if not line.startswith(READY):
            process.wait(10)
            raise RuntimeError(f"the proxy did not start: {line}{self.log}")
        self.url = line.removeprefix(READY).strip()
        self.port = int(self.url.rstrip("/").rsplit(":", 1)[1])

    @property
    def log(self) -> str:
        return self._log if isinstance(self._log, str) else self._log.read_text("utf-8")

    def keep_log(self) -> None:
        """Remember what it has logged: the file goes."""
        self._log = self.log

    def client(self) -> xmlrpc.client.ServerProxy:
        return xmlrpc.client.ServerProxy(self.url, allow_none=True)

    def discover(self) -> Any:
        """What an administrator is answered who asks; the engine is answered later, and with a stamp."""
        headers = [("X-Trouble-Shooting", "1")]
        with xmlrpc.client.ServerProxy(self.url, headers=headers) as client:
            return client.discover()

    def filters(self, units: list[str], hosts: list[str], properties: dict[str, str] | None = None) -> Any:
        with self.client() as client:
            return client.runFilters(units, hosts, "vm", properties or {})

    def scores(self, units: list[str], hosts: list[str], properties: dict[str, str] | None = None) -> Any:
        with self.client() as client:
            return client.runCostFunctions([[unit, 2] for unit in units], hosts, "vm", properties or {})

    def balance(self, unit: str, hosts: list[str]) -> Any:
        with self.client() as client:
            return client.runLoadBalancing(unit, hosts, {})

    def metrics(self) -> dict[Sample, float]:
        """Its figures, by their names without the proxy's prefix, and their labels."""
        found = samples(f"{self.url}metrics")
        return {(name.removeprefix(PREFIX), *labels): value for (name, *labels), value in found.items()}

    def descendants(self) -> list[psutil.Process]:
        return list(psutil.Process(self.process.pid).children(recursive=True))

    def workers(self) -> list[psutil.Process]:
        """The worker processes: the grandchildren, below the zygotes."""
        found: list[psutil.Process] = []
        for zygote in psutil.Process(self.process.pid).children():
            with suppress(psutil.NoSuchProcess):  # a reload ends zygotes
                found.extend(zygote.children())
        return [worker for worker in found if worker.is_running()]

    def kill(self) -> None:
        """End it without warning."""
        self._over = True
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """SIGTERM must end it with status 0 and leave nothing behind."""
        if self._over:
            return
        self._over = True
        left = self.descendants()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.log
        _, alive = psutil.wait_procs(left, timeout=30)
        assert not alive


def well(result: Any) -> dict[str, Any]:
    """An answer of units of which none has failed."""
    return {"result_code": 0, "result": result, "plugin_errors": {}, "errors": []}


def write_plugins(folder: Path, **modules: str) -> Path:
    """Write a plugin folder with a module for each argument."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(source), "utf-8")
    return folder


def units(kind: str = "filter", /, **bodies: str) -> str:
    """The source of units that filter, score or balance, each by these statements."""
    head = f"def do_{kind}(self, hosts, {'args' if kind == 'balance' else 'vm, args'}):"
    return "".join(
        f"class {name}:\n    {head}\n{textwrap.indent(textwrap.dedent(body), ' ' * 8)}\n"
        for name, body in bodies.items()
    )


@contextmanager
def serving(
    place: Path,
    *,
    config: str = "",
    environment: Mapping[str, str] | None = None,
    shell: str = "",
    **modules: str,
) -> Iterator[RunningProxy]:
    """A proxy over the folder `plugins` of this place, with a module for each further argument."""
    folder = write_plugins(place / "plugins", **modules)
    with running(folder, config=config, environment=environment, shell=shell) as proxy:
        yield proxy


@contextmanager
def running(
    *folders: Path,
    config: str = "",
    environment: Mapping[str, str] | None = None,
    listen: str = "127.0.0.1:0",
    shell: str = "",
    pass_fds: Sequence[int] = (),
) -> Iterator[RunningProxy]:
    """A proxy over these plugin folders, ended cleanly afterwards.

    It starts as quickly as it can; with `shell`, which then runs before it in its process, as its users do.
    """
    words = ["run"]
    if listen:
        words += ["--listen", listen]
    for folder in folders:
        words += ["--plugins", str(folder)]
    with TemporaryDirectory() as temporary:
        if folders or config:
            (file := Path(temporary, "proxy.toml")).write_text(_at_once(config), "utf-8")
            words += ["--config", str(file)]
        log = Path(temporary, "log")
        process = _started(words, log, {**os.environ, **(environment or {})}, shell, pass_fds)
        try:
            proxy = RunningProxy(process, log)
            try:
                yield proxy
                proxy.stop()
            finally:
                proxy.keep_log()
        finally:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


def handing_over(server: socket.socket) -> str:
    """What systemd does before it starts a service with a socket."""
    number = server.fileno()
    third = "" if number == 3 else f"exec 3<&{number} {number}<&-; "
    return f"{third}export LISTEN_FDS=1 LISTEN_PID=$$"


def _started(
    words: Sequence[str], log: Path, environment: Mapping[str, str], shell: str, pass_fds: Sequence[int]
) -> subprocess.Popen[str] | Forked:
    if not shell and not pass_fds:
        return Forked(main, words, log, environment)
    with log.open("w") as file:
        return subprocess.Popen(
            ["bash", "-c", f'{shell or "true"}; exec "$@"', "bash", *COMMAND, *words],
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            env=environment,
            pass_fds=pass_fds,
        )


def command(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `ovirt-scheduler-proxy` to its end."""
    with TemporaryDirectory() as folder:
        return completed(main, arguments, Path(folder, "log"), {**os.environ, **(environment or {})})


def eventually(condition: Callable[[], Any], seconds: float = 100.0, what: str = "it") -> None:
    """Wait until the condition holds, on a busy machine as well; what a test cannot wait for otherwise.

    It asks less and less often, up to ten times a second: what asks takes time from what it waits for.
    """
    pause, waiting = 0.005, threading.Event()
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen in time"
        waiting.wait(pause)
        pause = min(0.1, 1.5 * pause)


def _at_once(config: str) -> str:
    """Discovery is answered at once, unless the configuration says how late: no engine starts here."""
    text = textwrap.dedent(config)
    if "[calls]" not in text:
        return text + AT_ONCE
    return text if "discovery_seconds" in text else text.replace("[calls]\n", AT_ONCE)
