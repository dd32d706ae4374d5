"""Whatever a plugin puts into the folder of expected placements, nobody waits for it, ends or swells."""

from __future__ import annotations

import os
import resource
import shutil
import struct
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ovirt_placement import inventory
from ovirt_placement.config import Config
from ovirt_placement.inventory.expected import journal
from ovirt_placement.inventory.expected.ranks import packed
from ovirt_placement.inventory.expected.traces import Outcomes, Trace, TraceOutcome, Traces
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import configured, ended, loaded, running

GIB = 1 << 30
MARK = b"\xf5\x0aOV"


def fifo(path: Path) -> None:
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.mkdir()
    (path / "something").touch()


def link_to_nothing(path: Path) -> None:
    path.symlink_to("nothing")


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    path.touch(0o660)
    os.truncate(path, 1024 * GIB)


def marks(path: Path) -> None:
    """As many as are read; a file of 1 GiB is not even read."""
    path.write_bytes(MARK * (journal._LONGEST // len(MARK)))


def marks_with_lengths(path: Path) -> None:
    """Each says that a long record follows, whose checksum is to be made."""
    path.write_bytes(struct.pack(">4sII", MARK, 1 << 20, 0) * (8 << 20 >> 3))


def closed(path: Path) -> None:
    path.touch()
    path.chmod(0)


SPOILT = (fifo, directory, link_to_nothing, endless, sparse, marks, marks_with_lengths, closed)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "expected"


def left(traces: Traces, vm: str, ranks: bytes | None = None) -> None:
    hosts = ("h1", "h2")
    traces.leave(vm, Trace("W", 100.0, None, hosts, packed(range(2)) if ranks is None else ranks, 1))


def put(folder: Path, name: str, spoil: Callable[[Path], None]) -> None:
    path = folder / name
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    spoil(path)


def within_little(work: Callable[[], object]) -> None:
    """Work in a thread that may hang, under a limit of memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "it hangs"
    assert not errors
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


@pytest.mark.parametrize("known", [False, True], ids=["new", "known"])
@pytest.mark.parametrize("spoil", SPOILT)
def test_a_journal_that_is_none_is_as_none_and_is_begun_again_where_that_can_be(
    folder: Path, spoil: Callable[[Path], None], known: bool, caplog: pytest.LogCaptureFixture
) -> None:
    traces = Traces(folder)
    left(traces, "before")
    if known:
        traces.read()
    put(folder, "journal", spoil)

    def look() -> None:
        for number in range(3):
            traces.read()
            assert not traces.found.keys() & {"before"} or spoil is closed  # root may read that one
            traces.drop("before", 1000.0, TraceOutcome.RIGHT)
            left(traces, f"after{number}")

    within_little(look)
    assert len(caplog.records) <= 1
    if spoil is not directory:
        left(traces, "at last")
        fresh = Traces(folder)
        for reader in (traces, fresh):
            reader.read()
            assert "at last" in reader.found
        assert (folder / "journal").stat().st_size < 1 << 20


@pytest.mark.parametrize("spoil", SPOILT)
def test_what_lies_where_a_new_journal_is_written(folder: Path, spoil: Callable[[Path], None]) -> None:
    traces = Traces(folder)
    left(traces, "a")
    (folder / "journal").unlink()
    spoil(folder / "journal.new")
    within_little(lambda: left(traces, "b"))
    traces.read()
    assert traces.found.keys() == (set() if spoil is directory else {"b"})


@pytest.mark.parametrize("spoil", SPOILT)
def test_outcomes_that_are_none(folder: Path, spoil: Callable[[Path], None]) -> None:
    traces = Traces(folder)
    left(traces, "a")
    left(traces, "b")
    traces.read()
    spoil(folder / "outcomes")

    def look() -> None:
        traces.drop("a", 1000.0, TraceOutcome.RIGHT)
        assert traces.outcomes().right <= 1

    within_little(look)


@pytest.mark.parametrize("spoil", [fifo, link_to_nothing, sparse])
def test_a_folder_that_is_none(folder: Path, spoil: Callable[[Path], None]) -> None:
    spoil(folder)
    traces = Traces(folder)

    def look() -> None:
        left(traces, "a")
        assert traces.read() == set()
        assert traces.outcomes() == Outcomes(0, 0, 0)

    within_little(look)


@pytest.mark.parametrize("ranks", [b"B", b"B\x00", b"B\x00\x00\x00", b"I\x00\x00", b"X\x00\x00", b"I"])
def test_ranks_that_are_not_one_for_each_host_are_nothing(folder: Path, ranks: bytes) -> None:
    traces = Traces(folder)
    left(traces, "a", ranks)
    left(traces, "b")
    traces.read()
    assert traces.found.keys() == {"b"}


def test_a_record_that_is_whole_and_says_nothing_is_passed_over(folder: Path) -> None:
    traces = Traces(folder)
    left(traces, "a")
    with (folder / "journal").open("ab") as file:
        for record in (b"", b"\xc1", msgspec.msgpack.encode([7]), msgspec.msgpack.encode([2, "a"])):
            file.write(struct.pack(">4sII", MARK, len(record), zlib.crc32(record)) + record)
    left(traces, "b")
    traces.read()
    assert traces.found.keys() == {"a", "b"}


@pytest.mark.system
@pytest.mark.parametrize("spoil", SPOILT)
def test_the_inventory_goes_on_and_ends_when_it_is_asked_to(
    engine: EngineServer, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    file = configured(tmp_path, engine)
    config: Config = loaded(file)
    with running(file) as service:
        expected = config.inventory.directory / "expected"
        spoil(expected / "journal")
        spoil(expected / "outcomes")
        for _ in range(2):
            assert inventory.snapshot(config=config, max_age=0, deadline=30).vms
        assert "Traceback" not in ended(service)
