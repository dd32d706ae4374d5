"""A service that gets too little memory ends, so that it is started again: it never hangs."""

from __future__ import annotations

import selectors
import signal
import subprocess
from pathlib import Path
from typing import IO

import pytest

from ovirt_service.errors import EXIT_STATUS
from tests.placement.inventory.running import COMMAND

#: MiB of addresses, from where Python hardly starts to where a small engine can be followed.
LIMITS = range(100, 260, 20)
LONG_SECONDS = 60
#: A library that does without the memory that it did not get is ended by the system.
CRASHES = (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS)


def heard(pipe: IO[str]) -> bool:
    """Whether something comes, or the end, in time."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        return bool(selector.select(LONG_SECONDS))


@pytest.mark.system
@pytest.mark.parametrize("limit", LIMITS)
def test_it_ends_by_itself_or_by_a_signal(file: Path, tmp_path: Path, limit: int) -> None:
    command = f"ulimit -v {limit << 10}; exec {COMMAND} inventory run --config {file}"
    log = tmp_path / "log"
    with (
        log.open("w") as logged,
        subprocess.Popen(
            ["bash", "-c", command], stdout=subprocess.PIPE, stderr=logged, text=True
        ) as service,
    ):
        try:
            assert service.stdout is not None
            assert heard(service.stdout), f"it hangs: {log.read_text()}"
            began = service.stdout.readline()  # that it publishes, or nothing when it has ended
            if began:
                service.send_signal(signal.SIGTERM)
            # What has begun may still run out before the signal comes.
            ended = (0, EXIT_STATUS) if began else range(1, EXIT_STATUS + 2)
            assert service.wait(LONG_SECONDS) in (*ended, *CRASHES)
        finally:
            service.kill()
    assert "malformed XML" not in log.read_text()
