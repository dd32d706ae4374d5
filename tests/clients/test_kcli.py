"""kcli, which administrators call by hand: it lists, shows, stops and starts VMs of an engine."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.python_packages import install
from tests.clients.world import served

pytestmark = pytest.mark.nightly

PACKAGES = ("kcli==99.0.202610251748", "argcomplete==3.7.2", "prettytable==3.18.0", "wcwidth==0.9.4")
CONFIGURATION = """
default: {{client: engine}}
engine: {{type: ovirt, host: {host}, user: admin@internal, password: password, org: Example,
          ca_file: {folder}/ca.pem, datacenter: DC, cluster: Default, pool: data}}
"""

Kcli = Callable[..., str]


@pytest.fixture(scope="module")
def kcli(installed: Path, folder: Path) -> Iterator[Kcli]:
    packages = install(installed, *PACKAGES)
    host = _address()
    environment = os.environ | {"HOME": str(folder), "PYTHONPATH": str(packages)}
    (folder / ".kcli").mkdir()
    (folder / ".kcli" / "config.yml").write_text(CONFIGURATION.format(host=host, folder=folder))

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "kvirt.cli", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    with served(folder, f"{host}:443"):
        yield run


def _address() -> str:
    """Give a loopback address of our own: kcli knows no other port than 443."""
    host = f"127.{os.getpid() >> 8 & 127 | 128}.{os.getpid() & 255}.7"
    try:
        socket.create_server((host, 443)).close()
    except PermissionError:
        pytest.skip("only root may listen on port 443 here")
    return host


def rows(table: str) -> list[list[str]]:
    """Give the cells of a table without its head."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_vms_are_listed_stopped_and_started(kcli: Kcli) -> None:
    def statuses() -> list[tuple[str, str]]:
        return [(name, status) for name, status, *_ in rows(kcli("list", "vm"))]

    assert statuses() == [("idle", "down"), ("web", "up")]
    assert "web stopped" in kcli("stop", "vm", "web")
    assert statuses() == [("idle", "down"), ("web", "down")]
    assert "web started" in kcli("start", "vm", "web")
    shown = json.loads(kcli("info", "vm", "-o", "json", "web"))
    assert (shown["status"], shown["memory"], shown["numcpus"]) == ("up", 1024, 1)
    assert (shown["image"], shown["disks"][0]["format"]) == ("Blank", "cow")
    assert shown["nets"][0]["net"] == "ovirtmgmt"


def test_vms_are_changed_and_deleted(kcli: Kcli) -> None:
    for change in ("memory=2048", "numcpus=2", "description=mine"):
        kcli("update", "vm", "idle", "-P", change)
    kcli("create", "vm-nic", "-n", "ovirtmgmt", "idle")
    shown = json.loads(kcli("info", "vm", "-o", "json", "idle"))
    assert (shown["memory"], shown["numcpus"], shown["description"]) == (2048, 2, "mine")
    assert [net["net"] for net in shown["nets"]] == ["ovirtmgmt"]
    assert "web restarted" in kcli("restart", "vm", "web")
    kcli("delete", "vm", "idle", "-y")
    assert [name for name, *_ in rows(kcli("list", "vm"))] == ["web"]
    assert "hosts_summary: 2" in kcli("info", "host")


def test_what_vms_stand_on_is_listed(kcli: Kcli) -> None:
    assert [row[0] for row in rows(kcli("list", "network"))] == ["ovirtmgmt"]
    assert "data" in [row[0] for row in rows(kcli("list", "pool"))]
    assert [row[0] for row in rows(kcli("list", "disk"))] == ["root"]
