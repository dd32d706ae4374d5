"""A signal at any moment ends a daemon's sleep, however many come and whenever."""

from __future__ import annotations

import subprocess
import sys

import pytest

DAEMON = """
from ovirt_service.daemon import Stop
stop = Stop()
print("ready", flush=True)
while not stop.sleep(0):
    pass
"""


@pytest.mark.parametrize("signals", [1, 2])
def test_a_signal_between_two_sleeps_is_not_lost(signals: int) -> None:
    for _ in range(10):
        with subprocess.Popen([sys.executable, "-c", DAEMON], stdout=subprocess.PIPE) as daemon:
            assert daemon.stdout is not None
            daemon.stdout.readline()
            for _ in range(signals):
                daemon.terminate()
            assert daemon.wait(10) == 0
