"""A real PostgreSQL server in a folder of its own, which can be stopped, can hang, and can fail over."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

USER = "placement"


class PostgresServer:
    """One server, over a Unix socket that only this test can reach."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = url_of(self)

    @classmethod
    def made(cls, folder: Path) -> Self:
        _run("initdb", "--no-sync", "--auth=trust", f"--username={USER}", "-D", str(folder / "data"))
        return cls(folder)

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        self._control("-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def reload(self) -> None:
        """Have it read its settings again."""
        self._control("reload")

    def own(self, folder: Path) -> None:
        """Give it a folder."""
        owner = _owner()
        os.chown(folder, owner.pw_uid, owner.pw_gid)

    def stop(self) -> None:
        self._control("-w", "-m", "immediate", "stop")

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """No process of it gets on; clients that connect or wait for an answer wait."""
        processes = self._processes()
        for process in processes:
            process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                process.send_signal(signal.SIGCONT)

    def standby(self, folder: Path) -> PostgresServer:
        """Another one, started, without whose word nothing counts as committed here from now on."""
        source = f"host={self.folder} user={USER}"
        _run("pg_basebackup", "-d", source, "-D", str(folder / "data"), "-R", "--checkpoint=fast")
        other = PostgresServer(folder)
        other.start()
        for statement in ("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"):
            _run("psql", "-d", f"{source} dbname=postgres", "-c", statement)
        return other

    def promote(self) -> None:
        self._control("-w", "promote")

    def _control(self, *arguments: str) -> None:
        _run("pg_ctl", "-D", str(self.folder / "data"), *arguments)

    def _processes(self) -> list[psutil.Process]:
        first = psutil.Process(int((self.folder / "data" / "postmaster.pid").read_text().split()[0]))
        return [first, *first.children(recursive=True)]


def url_of(*servers: PostgresServer) -> str:
    """Where those who write find whichever of the servers takes what they write."""
    folders = ",".join(str(server.folder) for server in servers)
    writable = "&target_session_attrs=read-write" if len(servers) > 1 else ""
    return f"postgresql://{USER}@/postgres?host={folders}{writable}"


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder for a server, with a path that is short enough for a socket's."""
    if shutil.which("initdb") is None or shutil.which("pg_ctl") is None:
        pytest.skip("no PostgreSQL server is installed (initdb, pg_ctl)")
    folder = Path(tempfile.mkdtemp(prefix="placement-"))
    owner = _owner()
    os.chown(folder, owner.pw_uid, owner.pw_gid)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def running() -> Iterator[PostgresServer]:
    """A server that has started, and is stopped in the end if it runs still."""
    with own_folder() as folder:
        server = PostgresServer.made(folder)
        server.start()
        try:
            yield server
        finally:
            if (folder / "data" / "postmaster.pid").exists():
                server.stop()


def _owner() -> pwd.struct_passwd:
    """PostgreSQL does not run as root: take the user that nobody is."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())


def _run(*command: str) -> None:
    switch: dict[str, Any] = {}
    if os.geteuid() == 0:
        owner = _owner()
        switch = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": ()}
    subprocess.run(
        command, check=True, cwd="/", stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, **switch
    )
