"""Runs the proxy as a process of its own, the way systemd does, and speaks to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import xmlrpc.client
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

COMMAND = [sys.executable, "-m", "ovirt_scheduler_proxy.cli"]
READY = "ovirt-scheduler-proxy: listening on "


class RunningProxy:
    """A proxy that answers at `url`; what it logs is collected in `log`."""

    def __init__(self, process: subprocess.Popen[str], log_lines: list[str]) -> None:
        self.process = process
        self._over = False
        self.log_lines = log_lines
        line = process.stdout.readline() if process.stdout else ""
        if not line.startswith(READY):
            process.wait(10)
            raise RuntimeError(f"the proxy did not start: {line}{self.log}")
        self.url = line.removeprefix(READY).strip()
        self.port = int(self.url.rstrip("/").rsplit(":", 1)[1])

    @property
    def log(self) -> str:
        return "".join(self.log_lines)

    def client(self) -> xmlrpc.client.ServerProxy:
        return xmlrpc.client.ServerProxy(self.url, allow_none=True)

    def filters(self, units: list[str], hosts: list[str], properties: dict[str, str] | None = None) -> Any:
        with self.client() as client:
            return client.runFilters(units, hosts, "vm", properties or {})

    def scores(self, units: list[str], hosts: list[str], properties: dict[str, str] | None = None) -> Any:
        with self.client() as client:
            return client.runCostFunctions([[unit, 2] for unit in units], hosts, "vm", properties or {})

    def balance(self, unit: str, hosts: list[str]) -> Any:
        with self.client() as client:
            return client.runLoadBalancing(unit, hosts, {})

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


def write_plugins(folder: Path, **modules: str) -> Path:
    """Write a plugin folder with a module for each argument."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(source), "utf-8")
    return folder


@contextmanager
def running(
    *folders: Path,
    config: str = "",
    environment: dict[str, str] | None = None,
    listen: str = "127.0.0.1:0",
    shell: str = "true",
    pass_fds: Sequence[int] = (),
) -> Iterator[RunningProxy]:
    """A proxy over these plugin folders, ended cleanly afterwards; `shell` runs before it in its process."""
    arguments = ["bash", "-c", f'{shell}; exec "$@"', "bash", *COMMAND, "run"]
    if listen:
        arguments += ["--listen", listen]
    for folder in folders:
        arguments += ["--plugins", str(folder)]
    with _config_file(folders, config) as file:
        process = subprocess.Popen(
            [*arguments, "--config", str(file)] if file else arguments,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
            pass_fds=pass_fds,
        )
        log_lines: list[str] = []
        reader = threading.Thread(target=_collect, args=[process, log_lines], daemon=True)
        reader.start()
        try:
            proxy = RunningProxy(process, log_lines)
            yield proxy
            proxy.stop()
        finally:
            process.kill()
            process.wait()
            reader.join(5)
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()


def command(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `ovirt-scheduler-proxy` to its end."""
    env = {**os.environ, **(environment or {})}
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, env=env)


def eventually(condition: Any, seconds: float = 60.0) -> None:
    """Wait until the condition holds; what a test cannot wait for otherwise."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        pause.wait(0.02)
    raise AssertionError("it did not happen in time")


@contextmanager
def _config_file(folders: tuple[Path, ...], config: str) -> Iterator[Path | None]:
    if not config:
        yield None
        return
    file = (folders[0].parent if folders else Path.cwd()) / f"proxy-{os.urandom(4).hex()}.toml"
    file.write_text(textwrap.dedent(config), "utf-8")
    try:
        yield file
    finally:
        file.unlink()


def _collect(process: subprocess.Popen[str], lines: list[str]) -> None:
    if process.stderr:
        for line in process.stderr:
            lines.append(line)
