"""A process that may open no more files knows that there is no snapshot, and goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import configured

#: Knows nothing yet when it has no descriptors left, and reads the engine once it has some again.
READER = """
import os, pathlib, resource, sys
from ovirt_placement import config, inventory
from ovirt_placement.inventory import NoSnapshot, snapshot
settings = config.load(pathlib.Path(sys.argv[1]), {})
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) - 1, hard))
try:
    inventory.snapshot(config=settings)
except inventory.NoSnapshot as error:
    print(error)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
print(len(inventory.snapshot(config=settings, deadline=60).vms) > 0)
"""


def test_without_a_descriptor_there_is_no_snapshot_and_with_one_there_is(
    tmp_path: Path, engine: EngineServer
) -> None:
    file = configured(tmp_path, engine)
    ran = subprocess.run(
        [sys.executable, "-c", READER, str(file)], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.stdout.splitlines() == ["Too many open files", "True"], ran.stderr
