"""Processes without an inventory take turns: they do not all read the engine at the same time."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ovirt_placement.config import Config
from ovirt_placement.inventory import direct
from ovirt_placement.inventory.direct import READERS, DirectReader, turn, turn_files
from ovirt_placement.model import Snapshot
from tests.placement.engine_server import EngineServer

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

#: Long enough for another reader to come, if it may.
HELD_SECONDS = 0.1


def files(folder: Path) -> list[Path]:
    return [folder / f"reader-{number}" for number in range(READERS)]


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


def test_few_read_the_engine_at_the_same_time(engine: EngineServer, config: Config, tmp_path: Path) -> None:
    engine.answer = counted = Counted()
    readers = [DirectReader(config.engine, files=files(tmp_path)) for _ in range(3 * READERS)]

    def read(reader: DirectReader) -> Snapshot | None:
        return reader.read(0.0, time.monotonic() + 60)

    with ThreadPoolExecutor(len(readers)) as threads:
        found = list(threads.map(read, readers))
    assert counted.most == READERS
    assert None not in found


@pytest.mark.parametrize("spoil", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/nowhere")])
def test_what_stands_in_the_place_of_a_turn_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], object]
) -> None:
    monkeypatch.setattr(direct, "_PATIENCE_SECONDS", 0.01)
    for number in range(READERS):
        spoil(tmp_path / f"reader-{number}")
    with turn(files(tmp_path)), turn(files(tmp_path)), turn(files(tmp_path)), turn(()):
        pass


def test_what_another_user_has_put_there_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They could hold it locked for ever, and let us open it."""
    held = [os.open(path, os.O_RDWR | os.O_CREAT, 0o666) for path in files(tmp_path)]
    for file in held:
        fcntl.flock(file, fcntl.LOCK_EX)
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    began = time.monotonic()
    with turn(files(tmp_path)):
        assert time.monotonic() - began < direct._PATIENCE_SECONDS / 2
    for file in held:
        os.close(file)


def test_a_turn_makes_nothing_where_others_have_read(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that reads while another one does would else have that one forget what it has read."""
    directory = config.inventory.directory
    directory.mkdir()
    with turn(turn_files(config)):
        made = directory.stat().st_mtime_ns
        with turn(turn_files(config)):
            assert directory.stat().st_mtime_ns == made


def test_who_is_stopped_in_its_turn_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "_PATIENCE_SECONDS", 0.01)
    with turn(files(tmp_path)), turn(files(tmp_path)), turn(files(tmp_path)), turn(files(tmp_path)):
        pass
