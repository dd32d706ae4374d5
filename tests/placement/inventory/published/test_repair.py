"""Whatever happens to the published file, its writer finds out and publishes again what it wrote."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ovirt_placement.inventory.published import layout, publication
from ovirt_placement.inventory.published.publication import Moments
from ovirt_placement.inventory.published.writer import Writer
from ovirt_placement.model import Snapshot

MOMENTS = Moments(1.0, 2.0, 3.0, 4.0)


@pytest.fixture
def file(tmp_path: Path, writer: Writer, snapshot: Snapshot) -> Path:
    writer.publish(snapshot, MOMENTS)
    return tmp_path / "snapshot"


def overwritten(file: Path, content: bytes) -> None:
    """Change the bytes in their place, as a stray writer would: the file stays the same one."""
    with file.open("rb+") as opened:
        opened.write(content)
        opened.truncate()


def assert_repaired(file: Path, writer: Writer, snapshot: Snapshot, what: object) -> None:
    version = writer.repair(MOMENTS)
    assert version is not None, what
    found = publication.read(file.parent)
    assert found is not None
    assert (found.version, found.snapshot, found.moments) == (version, snapshot, MOMENTS), what
    assert writer.repair(MOMENTS) is None, what


def test_each_byte_of_the_header_and_the_moments_and_any_other(
    file: Path, writer: Writer, snapshot: Snapshot
) -> None:
    dice, size = random.Random(1), file.stat().st_size
    for at in (*range(layout.TABLE_OFFSET), *dice.sample(range(layout.TABLE_OFFSET, size), 200)):
        content = bytearray(file.read_bytes())
        content[at] ^= 1 << dice.randrange(8)
        overwritten(file, bytes(content))
        assert_repaired(file, writer, snapshot, f"byte {at}")


def test_each_length(file: Path, writer: Writer, snapshot: Snapshot) -> None:
    dice, size = random.Random(2), file.stat().st_size
    longer = (size + 1, size + 4096, 1 << 40)
    for length in (*range(layout.TABLE_OFFSET + 2), *dice.sample(range(size), 100), size - 1, *longer):
        os.truncate(file, length)
        assert_repaired(file, writer, snapshot, f"length {length}")


@pytest.mark.parametrize("length", [0, 8, layout.MOMENTS_OFFSET, layout.TABLE_OFFSET])
def test_moments_are_confirmed_of_nothing_that_is_damaged(
    file: Path, writer: Writer, snapshot: Snapshot, length: int
) -> None:
    os.truncate(file, length)
    version = writer.publish(snapshot, Moments(5.0))
    found = publication.read(file.parent)
    assert found is not None
    assert (found.version, found.snapshot, found.moments) == (version, snapshot, Moments(5.0))


def moved_away(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))


def replaced_by_an_earlier_one(file: Path) -> None:
    shutil.copy(file, file.with_name("copy"))
    file.with_name("copy").rename(file)


def linked(file: Path) -> None:
    moved_away(file)
    file.symlink_to(file.with_name("elsewhere"))


def fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def closed_to_the_group(file: Path) -> None:
    file.chmod(0o600)


@pytest.mark.parametrize(
    "happens", [moved_away, replaced_by_an_earlier_one, linked, fifo, closed_to_the_group]
)
def test_what_is_put_in_its_place(
    file: Path, writer: Writer, snapshot: Snapshot, happens: Callable[[Path], None]
) -> None:
    mode = file.stat().st_mode
    happens(file)
    assert_repaired(file, writer, snapshot, happens)
    assert file.lstat().st_mode == mode


def test_a_fifo_where_the_next_file_is_written_blocks_nobody(
    file: Path, writer: Writer, snapshot: Snapshot
) -> None:
    os.mkfifo(file.with_name("snapshot.new"))
    file.unlink()
    assert_repaired(file, writer, snapshot, "FIFO")


def test_each_repair_is_counted_and_logged_once(
    tmp_path: Path, snapshot: Snapshot, caplog: pytest.LogCaptureFixture
) -> None:
    repaired: list[None] = []
    writer = Writer(tmp_path, lambda: repaired.append(None))
    writer.publish(snapshot, MOMENTS)
    for _ in range(3):
        os.truncate(tmp_path / "snapshot", 0)
        writer.repair(MOMENTS)
    assert len(repaired) == 3
    assert caplog.text.count("what was published was damaged") == 1


def test_what_is_withdrawn_is_not_repaired(file: Path, writer: Writer) -> None:
    writer.withdraw()
    assert writer.repair(MOMENTS) is None
    assert not file.exists()
