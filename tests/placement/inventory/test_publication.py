"""The published file is whole at every moment, and believed only where it can be."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from ovirt_placement.inventory import publication
from ovirt_placement.inventory.publication import Moments
from ovirt_placement.model import Snapshot
from tests.placement.test_statefile import full_state, loaded


@pytest.fixture
def snapshot() -> Snapshot:
    read: Snapshot = loaded(full_state())
    return read


def write(directory: Path, snapshot: Snapshot, version: int, read_at: float = 0.0) -> None:
    publication.write(directory, version, Moments(read_at), msgspec.msgpack.encode(snapshot))


def test_what_is_written_is_read(tmp_path: Path, snapshot: Snapshot) -> None:
    read_at = publication.now()
    write(tmp_path, snapshot, 3, read_at)
    found = publication.read(tmp_path)
    assert found is not None
    assert (found.snapshot, found.version, found.moments) == (snapshot, 3, Moments(read_at))
    assert 0 <= found.age_seconds < 60
    assert (tmp_path / "snapshot").stat().st_mode & 0o007 == 0


def test_the_same_version_is_not_decoded_again_but_its_age_is(tmp_path: Path, snapshot: Snapshot) -> None:
    write(tmp_path, snapshot, 3, 1.0)
    first = publication.read(tmp_path)
    write(tmp_path, snapshot, 3, 2.0)
    second = publication.read(tmp_path, first)
    write(tmp_path, snapshot, 4, 3.0)
    third = publication.read(tmp_path, second)
    assert first is not None
    assert second is not None
    assert third is not None
    assert second.snapshot is first.snapshot
    assert (second.moments.read_at, third.moments.read_at) == (2.0, 3.0)
    assert third.snapshot is not first.snapshot


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:20],
        lambda content: content[:-1],
        lambda content: b"x" + content[1:],
        lambda content: content[:8] + bytes(16) + content[24:],  # another run of the machine
        lambda content: content[:64] + b"\xc0" + content[65:],  # another release's payload
    ],
    ids=["empty", "no header", "cut", "no magic", "another boot", "another payload"],
)
def test_what_cannot_be_believed_is_as_nothing(tmp_path: Path, snapshot: Snapshot, damage: object) -> None:
    write(tmp_path, snapshot, 1)
    file = tmp_path / "snapshot"
    assert callable(damage)
    file.write_bytes(damage(file.read_bytes()))
    assert publication.read(tmp_path) is None


def test_what_still_holds_is_confirmed_without_writing_it_again(tmp_path: Path, snapshot: Snapshot) -> None:
    write(tmp_path, snapshot, 3, 1.0)
    before = (tmp_path / "snapshot").stat()
    moments = Moments(read_at=publication.now(), whole_at=2.0, statistics_at=publication.now() - 7.0)
    assert publication.confirm(tmp_path, moments)
    after = (tmp_path / "snapshot").stat()
    found = publication.read(tmp_path)
    assert found is not None
    assert (found.snapshot, found.version, found.moments) == (snapshot, 3, moments)
    assert (before.st_ino, before.st_size) == (after.st_ino, after.st_size)
    assert found.statistics_age_seconds is not None
    assert 7.0 <= found.statistics_age_seconds < 60


def test_what_is_gone_cannot_be_confirmed(tmp_path: Path) -> None:
    assert not publication.confirm(tmp_path, Moments(1.0))


def test_without_statistics_there_is_no_age_of_them(tmp_path: Path, snapshot: Snapshot) -> None:
    write(tmp_path, snapshot, 3)
    found = publication.read(tmp_path)
    assert found is not None
    assert found.statistics_age_seconds is None


def test_nothing_published_is_nothing(tmp_path: Path) -> None:
    assert publication.read(tmp_path) is None
    assert publication.read(tmp_path / "absent") is None


def test_a_reader_never_sees_half_a_publication(tmp_path: Path, snapshot: Snapshot) -> None:
    bulky = [replace(snapshot, vms=snapshot.vms * size) for size in (1, 2000)]
    write(tmp_path, bulky[0], 0)
    stop = threading.Event()

    def publish() -> None:
        version = 1
        while not stop.is_set():
            write(tmp_path, bulky[version % 2], version)
            version += 1

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        for _ in range(100):
            found = publication.read(tmp_path)
            assert found is not None
            assert len(found.snapshot.vms) == (1, 2000)[found.version % 2]
    finally:
        stop.set()
        publisher.join()
