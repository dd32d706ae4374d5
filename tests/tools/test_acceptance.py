"""The acceptance suite for engines, on the simulator: what passes, what is skipped, what is left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.model import DataCenter, Snapshot
from tests.builders import cluster, host, snapshot
from tests.configuration import PASSWORD
from tests.integration.world import World, running
from tests.paths import CHECKOUT

pytestmark = pytest.mark.system

STATE = replace(
    snapshot(cluster(data_center="d1", name="blue"), host("h1"), host("h2"), host("h3")),
    data_centers=(DataCenter(id="d1", name="Default"),),
)


def trial(world: World, *more: str) -> subprocess.Popen[str]:
    words = ("--url", world.api, "--user", "admin@internal", "--yes", *more)
    return subprocess.Popen(
        [sys.executable, "-m", "tools.acceptance", *words],
        cwd=CHECKOUT,
        env={**os.environ, "OVIRT_PASSWORD": PASSWORD},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def results(printed: str) -> dict[str, str]:
    """What became of each step, by its name."""
    lines = (line.partition(":")[0].split() for line in printed.splitlines())
    return {line[1]: line[0] for line in lines if line and line[0] in ("passed", "FAILED", "skipped")}


def left(world: World) -> Snapshot:
    """What the engine has by now but for its hosts."""
    file = world.folder / "password"
    settings = EngineSettings(url=world.api, username="admin@internal", password_file=file)
    with EngineConnection(settings) as connection:
        found = read_snapshot(connection)
    return snapshot(*found.vms, *found.clusters, *found.affinity_groups)


def test_all_steps_pass_and_nothing_is_left(tmp_path: Path) -> None:
    with running(tmp_path, STATE) as world:
        before = left(world)
        with trial(world, "--maintenance", "h3") as process:
            printed, _ = process.communicate(timeout=240)
        assert left(world) == before
    assert results(printed) == {
        **dict.fromkeys(("log-in", "snapshot", "discovery", "setup", "VMs", "groups", "start"), "passed"),
        **dict.fromkeys(("repair", "maintenance", "events"), "passed"),
        "rights": "skipped",
    }, printed
    assert printed.splitlines()[-1] == "0 failed, 0 left behind"
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("step", "number"),
    [
        ("snapshot", signal.SIGHUP),
        ("discovery", signal.SIGINT),
        ("VMs", signal.SIGINT),
        ("groups", signal.SIGTERM),
        ("start", signal.SIGTERM),
    ],
)
def test_nothing_is_left_of_one_that_is_stopped(tmp_path: Path, step: str, number: signal.Signals) -> None:
    """In the step after this one."""
    with running(tmp_path, STATE, proxy=step == "discovery") as world:
        before = left(world)
        with trial(world) as process:
            for line in process.stdout:
                if line.startswith(f"passed   {step}:"):
                    process.send_signal(number)
                    break
            printed = process.stdout.read()
            assert process.wait(240) == 130, printed
        assert left(world) == before
    assert f"stopped by {number.name}" in printed
    assert printed.splitlines()[-1] == "0 failed, 0 left behind"


def test_what_the_engine_lacks_is_skipped_by_name(tmp_path: Path) -> None:
    with running(tmp_path, STATE, proxy=False) as world, trial(world) as process:
        printed, _ = process.communicate(timeout=240)
    found = results(printed)
    assert (found["discovery"], found["setup"], found["maintenance"]) == ("skipped",) * 3, printed
    assert "skipped  discovery: the engine knows none of our policy units" in printed
    assert process.returncode == 0
