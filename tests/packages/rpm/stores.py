"""Stores that former releases have left on a machine: one of each version, filled, each of an engine."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

from ovirt_placement.store.versions import VERSION
from tests.packages.rpm.machine import Machine
from tests.packages.rpm.services import running, until
from tests.placement.store.former_stores import (
    FORMER,
    as_far_as,
    make_former,
    rows,
    with_todays_names,
    without_engine,
)

_FOLDER = "/var/lib/ovirt-placement"
_PASSWORD = "/etc/ovirt-placement/password-of-none"
#: Nobody answers there: a store is brought up to date before anybody asks the engine.
_CONFIGURATION = """\
[engine]
name = "default"
url = "http://127.0.0.1:9/ovirt-engine/api"
username = "admin@internal"
password_file = "{password}"
insecure = true

[store]
url = "sqlite:///{store}"
"""
_VERSION = """
import sqlite3, sys
(found,) = sqlite3.connect(sys.argv[1]).execute("SELECT version FROM schema_version")
sys.exit(found != (int(sys.argv[2]),))
"""


def place(machine: Machine, folder: Path) -> None:
    """Lay the stores there, and a configuration next to each."""
    folder.mkdir()
    machine.write(_PASSWORD, "secret\n")
    machine.shell(f"chown root:ovirt-placement {_PASSWORD} && chmod 640 {_PASSWORD}")
    for version in FORMER:
        file = folder / f"{version}.db"
        make_former(f"sqlite:///{file}", version)
        machine.write(f"/root/{version}.b64", base64.b64encode(file.read_bytes()).decode())
        machine.write(
            _configuration(version), _CONFIGURATION.format(store=_store(version), password=_PASSWORD)
        )
        machine.shell(f"base64 -d /root/{version}.b64 > {_store(version)}")
        machine.shell(f"chown ovirt-placement:ovirt-placement {_store(version)}")


def assert_untouched(machine: Machine, folder: Path, version: int) -> None:
    assert _content(machine, _store(version)) == (folder / f"{version}.db").read_bytes()


def assert_brought_up_to_date(machine: Machine, folder: Path, version: int) -> None:
    """By the enforcer as its unit runs it; all that stood there before is still there."""
    command = machine.command(
        "ovirt-enforcer", "run", "--config", _configuration(version), user="ovirt-placement"
    )
    with running(command):
        python = "/usr/libexec/ovirt-placement/bin/python3"
        until(machine, python, "-c", _VERSION, _store(version), str(VERSION))
    upgraded = folder / f"{version}-upgraded.db"
    for end in ("", "-wal"):
        if machine.has(f"{_store(version)}{end}"):
            Path(f"{upgraded}{end}").write_bytes(_content(machine, f"{_store(version)}{end}"))
    before = with_todays_names(rows(f"sqlite:///{folder / f'{version}.db'}", version))
    after = rows(f"sqlite:///{upgraded}", version)
    for held in (before, after):
        held.pop("leases", None)  # the service that brought it up to date leads now
    assert as_far_as(after, before) == without_engine(before)


def _store(version: int) -> str:
    return f"{_FOLDER}/of-version-{version}.db"


def _configuration(version: int) -> str:
    return f"/etc/ovirt-placement/of-version-{version}.toml"


def _content(machine: Machine, file: str) -> bytes:
    return subprocess.run(machine.command("cat", file), capture_output=True, check=True, timeout=60).stdout
