"""A simulated engine in a process of its own, in which time passes quickly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ovirt_simulator.cli
from ovirt_placement.model import Snapshot
from ovirt_placement.model.files import state_file
from tests.processes import Forked

#: Simulated seconds a second; a migration then takes some 140 ms.
_TIME_SCALE = 25


@contextmanager
def simulator(folder: Path, state: Snapshot, *, time_scale: float = _TIME_SCALE) -> Iterator[str]:
    """The address of its API."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "state.json"
    file.write_bytes(state_file.dumps(state))
    words = ["run", "--state", str(file), "--listen", "127.0.0.1:0", "--time-scale", str(time_scale)]
    with Forked(ovirt_simulator.cli.main, words, folder / "simulator.log", os.environ) as process:
        ready = next(line for line in process.stdout if "listening on" in line)
        yield f"{ready.split()[-1]}/ovirt-engine/api"
        process.end()
