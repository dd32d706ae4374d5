"""The published file is whole at every moment, while processes write, read, or are killed."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from ovirt_placement.inventory.published import publication
from ovirt_placement.inventory.published.publication import Moments
from ovirt_placement.inventory.published.writer import Writer
from ovirt_placement.model import Snapshot
from tests import builders


def renamed(snapshot: Snapshot, name: str) -> Snapshot:
    first, *others = snapshot.vms
    return replace(snapshot, vms=(replace(first, name=name), *others))


def test_what_is_written_is_read(tmp_path: Path, writer: Writer, snapshot: Snapshot) -> None:
    moments = Moments(publication.now(), 1.0, 2.0, publication.now(), 3.0)
    version = writer.publish(snapshot, moments)
    found = publication.read(tmp_path)
    assert found is not None
    assert (found.snapshot, found.version, found.moments) == (snapshot, version, moments)
    assert 0 <= found.age_seconds < 60
    assert (tmp_path / "snapshot").stat().st_mode & 0o007 == 0


def test_it_is_as_old_as_the_older_of_its_sources(tmp_path: Path, writer: Writer, snapshot: Snapshot) -> None:
    for read_at, store_asked_at in ((50.0, 40.0), (40.0, 50.0)):
        writer.publish(snapshot, Moments(read_at, store_asked_at=store_asked_at))
        found = publication.read(tmp_path)
        assert found is not None
        assert found.moments.as_of == 40.0


def test_what_says_the_same_is_confirmed_and_not_decoded_again(
    tmp_path: Path, writer: Writer, snapshot: Snapshot
) -> None:
    version = writer.publish(snapshot, Moments(1.0))
    first = publication.read(tmp_path)
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(snapshot), type=Snapshot)
    assert writer.publish(again, Moments(2.0)) == version
    second = publication.read(tmp_path, first)
    assert writer.publish(renamed(snapshot, "other"), Moments(3.0)) > version
    third = publication.read(tmp_path, second)
    assert first is not None
    assert second is not None
    assert third is not None
    assert second.snapshot is first.snapshot
    assert (second.moments.read_at, third.moments.read_at) == (2.0, 3.0)
    assert third.snapshot == renamed(snapshot, "other")


def test_a_new_writer_begins_with_a_higher_version_and_readers_follow(
    tmp_path: Path, writer: Writer, snapshot: Snapshot
) -> None:
    writer.publish(snapshot, Moments(1.0))
    known = publication.read(tmp_path)
    assert known is not None
    after = renamed(replace(snapshot, frozen_keys=()), "other")
    assert Writer(tmp_path).publish(after, Moments(2.0)) > known.version
    found = publication.read(tmp_path, known)
    assert found is not None
    assert found.snapshot == after


def test_a_file_that_cannot_be_written_leaves_none_behind(
    tmp_path: Path, writer: Writer, snapshot: Snapshot
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            writer.publish(snapshot, Moments(1.0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert list(tmp_path.iterdir()) == []
    writer.publish(snapshot, Moments(1.0))
    assert publication.read(tmp_path) is not None


def test_what_still_holds_is_confirmed_without_writing_it_again(
    tmp_path: Path, writer: Writer, snapshot: Snapshot
) -> None:
    version = writer.publish(snapshot, Moments(1.0))
    before = (tmp_path / "snapshot").stat()
    moments = Moments(read_at=publication.now(), whole_at=2.0, statistics_at=publication.now() - 7.0)
    writer.publish(snapshot, moments)
    after = (tmp_path / "snapshot").stat()
    found = publication.read(tmp_path)
    assert found is not None
    assert (found.snapshot, found.version, found.moments) == (snapshot, version, moments)
    assert (before.st_ino, before.st_size) == (after.st_ino, after.st_size)
    assert found.statistics_age_seconds is not None
    assert 7.0 <= found.statistics_age_seconds < 60


def test_what_somebody_took_away_is_written_again(tmp_path: Path, writer: Writer, snapshot: Snapshot) -> None:
    version = writer.publish(snapshot, Moments(1.0))
    (tmp_path / "snapshot").unlink()
    assert writer.publish(snapshot, Moments(2.0)) > version
    found = publication.read(tmp_path)
    assert found is not None
    assert found.snapshot == snapshot


def test_what_could_not_be_written_is_written_the_next_time(
    tmp_path: Path, writer: Writer, snapshot: Snapshot
) -> None:
    writer.publish(snapshot, Moments(1.0))
    in_the_way = tmp_path / "snapshot.new"
    in_the_way.mkdir()
    with pytest.raises(OSError, match="directory"):
        writer.publish(renamed(snapshot, "other"), Moments(2.0))
    in_the_way.rmdir()
    writer.publish(renamed(snapshot, "other"), Moments(3.0))
    found = publication.read(tmp_path)
    assert found is not None
    assert found.snapshot == renamed(snapshot, "other")


def test_what_a_writer_left_half_written_when_it_died_is_nothing_to_anybody(
    tmp_path: Path, writer: Writer, snapshot: Snapshot
) -> None:
    writer.publish(snapshot, Moments(1.0))
    (tmp_path / "snapshot.new").write_bytes((tmp_path / "snapshot").read_bytes()[:1000] * 1000)
    found = publication.read(tmp_path)
    assert found is not None
    assert found.snapshot == snapshot
    Writer(tmp_path).publish(renamed(snapshot, "other"), Moments(2.0))
    found = publication.read(tmp_path, found)
    assert found is not None
    assert found.snapshot == renamed(snapshot, "other")


def test_what_is_withdrawn_is_gone_and_stays_so(tmp_path: Path, writer: Writer, snapshot: Snapshot) -> None:
    writer.publish(snapshot, Moments(1.0))
    writer.withdraw()
    writer.publish(renamed(snapshot, "other"), Moments(2.0))
    assert list(tmp_path.iterdir()) == []


def test_what_was_never_read_has_no_age(tmp_path: Path, writer: Writer, snapshot: Snapshot) -> None:
    writer.publish(snapshot, Moments(1.0))
    found = publication.read(tmp_path)
    assert found is not None
    assert found.statistics_age_seconds is found.whole_age_seconds is found.keys_age_seconds is None


def test_nothing_published_is_nothing(tmp_path: Path) -> None:
    assert publication.read(tmp_path) is None
    assert publication.read(tmp_path / "absent") is None


def test_readers_never_see_half_a_publication(tmp_path: Path, writer: Writer) -> None:
    """Each of several readers, some of which skip versions, finds all VMs of one version alike."""
    vms = [builders.vm(f"v{number}", "h1") for number in range(500)]

    def publish(status: str) -> None:
        few = [replace(vm, status=status) for vm in vms[: 500 if status == "up" else 300]]
        writer.publish(builders.snapshot(builders.host("h1"), *few), Moments(1.0))

    publish("up")
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            publish("paused")
            publish("up")

    def read(pause: float) -> None:
        known, versions = None, set()
        until = time.monotonic() + 30
        while len(versions) < 10:
            assert time.monotonic() < until
            known = publication.read(tmp_path, known)
            assert known is not None
            statuses = Counter(vm.status for vm in known.snapshot.vms)
            assert statuses in ({"up": 500}, {"paused": 300})
            versions.add(known.version)
            stop.wait(pause)

    publisher = threading.Thread(target=write)
    publisher.start()
    try:
        with ThreadPoolExecutor() as readers:
            list(readers.map(read, (0.0, 0.01, 0.05)))
    finally:
        stop.set()
        publisher.join()


#: Publishes for ever, all VMs of a version alike.
_PUBLISHING = """
import sys, pathlib
from ovirt_placement.inventory.published.publication import Moments
from ovirt_placement.inventory.published.writer import Writer
from tests import builders
writer, number = Writer(pathlib.Path(sys.argv[1])), 0
while True:
    number += 1
    vms = (builders.vm(f"v{at}", "h1", name=str(number)) for at in range(2000))
    writer.publish(builders.snapshot(builders.host("h1"), *vms), Moments(float(number)))
"""


@pytest.mark.system
def test_a_writer_may_be_killed_at_any_moment(tmp_path: Path) -> None:
    known = None
    for pause in (0.0, 0.013, 0.029):
        before = 0 if known is None else known.version
        with subprocess.Popen([sys.executable, "-c", _PUBLISHING, str(tmp_path)]) as process:
            while known is None or known.version == before:
                assert process.poll() is None
                known = publication.read(tmp_path, known)
            time.sleep(pause)
            process.kill()
        known = publication.read(tmp_path, known)
        assert known is not None
        assert len(known.snapshot.vms) == 2000
        assert {vm.name for vm in known.snapshot.vms} == {str(int(known.moments.read_at))}
