"""ovirt_api, by which ovirt_exporter asks an engine: it logs in once, and is known by a cookie after that."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.clients.golang import Go
from tests.clients.world import WORLD
from tests.integration.ansible_playbook import simulated_engine

pytestmark = pytest.mark.nightly

PACKAGE = "github.com/czerwonk/ovirt_api"


def test_its_own_example(installed: Path, tmp_path: Path) -> None:
    program = tmp_path / "ovirt_api"
    Go(installed).run("build", "-o", str(program), PACKAGE)
    with simulated_engine(WORLD, tmp_path) as engine:
        command = [str(program), "-url", engine, "-user", "admin@internal", "-pass", "password"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert [line.split()[-1] for line in done.stderr.splitlines()][-2:] == ["idle", "web"]
