"""A real PostgreSQL server in a temporary folder, for as long as a test needs one."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy


@contextmanager
def postgresql() -> Iterator[str]:
    """Start a server that only this test can reach, over a Unix socket; give its SQLAlchemy URL."""
    if shutil.which("initdb") is None or shutil.which("pg_ctl") is None:
        pytest.skip("no PostgreSQL server is installed (initdb, pg_ctl)")
    folder = Path(tempfile.mkdtemp(prefix="placement-"))
    owner = _owner()
    os.chown(folder, owner.pw_uid, owner.pw_gid)
    try:
        _run(owner, "initdb", "--no-sync", "--auth=trust", "--username=placement", "-D", str(folder / "data"))
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        log = str(folder / "log")
        _run(owner, "pg_ctl", "-D", str(folder / "data"), "-w", "-l", log, "-o", options, "start")
        try:
            yield f"postgresql://placement@/postgres?host={folder}"
        finally:
            _run(owner, "pg_ctl", "-D", str(folder / "data"), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


def database(url: str) -> Any:
    """Open the database beside the store, with an engine of the test's own."""
    engine = sqlalchemy.create_engine(
        url.replace("postgresql:", "postgresql+psycopg:"), poolclass=sqlalchemy.NullPool
    )
    return engine.begin()


def _owner() -> pwd.struct_passwd:
    """PostgreSQL does not run as root: take the user that nobody is."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())


def _run(owner: pwd.struct_passwd, *command: str) -> None:
    switch: dict[str, Any] = {}
    if os.geteuid() == 0:
        switch = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": ()}
    subprocess.run(
        command, check=True, cwd="/", stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, **switch
    )
