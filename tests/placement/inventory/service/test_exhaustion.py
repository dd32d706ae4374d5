"""A service that gets too little memory ends, so that it is started again: it never hangs."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from ovirt_service.errors import EXIT_STATUS
from tests.placement.inventory.running import COMMAND

#: MiB of addresses, from where Python hardly starts to where a small engine can be followed.
LIMITS = range(100, 260, 20)
LONG_SECONDS = 60


@pytest.mark.parametrize("limit", LIMITS)
def test_it_ends_by_itself_or_by_a_signal(file: Path, limit: int) -> None:
    command = f"ulimit -v {limit << 10}; exec {COMMAND} inventory run --config {file}"
    with subprocess.Popen(
        ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as service:
        assert service.stdout is not None
        began = service.stdout.readline()  # that it publishes, or nothing when it has ended
        if began:
            service.send_signal(signal.SIGTERM)
        # What has begun may still run out before the signal comes.
        assert service.wait(LONG_SECONDS) in ((0, EXIT_STATUS) if began else range(1, EXIT_STATUS + 2))
        assert service.stderr is not None
        assert "malformed XML" not in service.stderr.read()
