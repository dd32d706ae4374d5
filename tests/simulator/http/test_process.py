"""The whole simulator as clients meet it: a process of its own, in which time passes by itself."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import ovirtsdk4
import pytest
from ovirtsdk4 import types

from ovirt_placement.model import state_file
from tests.simulator.http.world import WORLD

COMMAND = [sys.executable, "-c", "from ovirt_simulator.cli import main; raise SystemExit(main())", "run"]


def listening(process: subprocess.Popen[str]) -> str:
    """Wait for the line that says where the process listens, and give the address."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("ovirt-simulator: listening on http://127.0.0.1:"), line
    return line.split()[-1]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[ovirtsdk4.Connection]:
    """Connected to a process, which must end cleanly when it is asked to."""
    (tmp_path / "state.json").write_bytes(state_file.dumps(WORLD))
    arguments = ["--state", str(tmp_path / "state.json"), "--time-scale", "20"]
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True) as process:
        try:
            url = f"{listening(process)}/ovirt-engine/api"
            connected = ovirtsdk4.Connection(url=url, username="admin@internal", password="password")
            yield connected
            connected.close()
        finally:
            process.terminate()
        assert process.wait(timeout=60) == 0


def test_a_migration_runs_to_its_end_by_itself(connection: ovirtsdk4.Connection) -> None:
    system = connection.system_service()
    service = system.vms_service().vm_service("web2")
    service.migrate(host=types.Host(id="host1"), query={"correlation_id": "by-itself"})
    deadline = time.monotonic() + 30
    while (vm := service.get()).status != types.VmStatus.UP or vm.host.id != "host1":
        assert time.monotonic() < deadline
    codes: list[int] = []
    while len(codes) < 2:
        codes = [event.code for event in system.events_service().list(search="correlation_id=by-itself")]
        assert time.monotonic() < deadline
    assert sorted(codes) == [62, 63]
