"""Processes without an inventory take turns: they do not all read the engine at the same time."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ovirt_placement.config import Config
from ovirt_placement.inventory.direct import READERS, DirectReader
from ovirt_placement.model import Snapshot
from tests.placement.engine_server import EngineServer

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

#: Long enough for another reader to come, if it may.
HELD_SECONDS = 0.1


class Counted:
    """Counts how many requests for hosts the engine answers at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self.most = 0

    def __call__(self, path: str) -> None:
        if path != "/hosts":
            return
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        threading.Event().wait(HELD_SECONDS)
        with self._lock:
            self._now -= 1


def test_few_read_the_engine_at_the_same_time(engine: EngineServer, config: Config) -> None:
    engine.answer = counted = Counted()
    readers = [DirectReader(config.engine) for _ in range(3 * READERS)]

    def read(reader: DirectReader) -> Snapshot | None:
        return reader.read(0.0, time.monotonic() + 60)

    with ThreadPoolExecutor(len(readers)) as threads:
        found = list(threads.map(read, readers))
    assert counted.most == READERS
    assert None not in found
