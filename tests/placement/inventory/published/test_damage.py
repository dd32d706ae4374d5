"""What is published is believed only where it can be: what is damaged, or not for us, is not."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from ovirt_placement.inventory.published import publication, sections
from ovirt_placement.inventory.published.publication import Damaged, Moments
from ovirt_placement.inventory.published.writer import Writer
from ovirt_placement.model import Snapshot

#: Where the first section begins, which is the frame.
CONTENTS = 80 + 2 * 8 * sections.COUNT


@pytest.mark.parametrize(
    "change",
    [
        lambda content: b"x" + content[1:],
        lambda content: b"OVPLACE2" + content[8:],
        lambda content: content[:8] + bytes(16) + content[24:],  # another run of the machine
    ],
    ids=["no magic", "older", "another boot"],
)
def test_what_is_not_for_us_is_not_believed(
    tmp_path: Path, writer: Writer, snapshot: Snapshot, change: Callable[[bytes], bytes]
) -> None:
    writer.publish(snapshot, Moments(1.0))
    file = tmp_path / "snapshot"
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(Damaged):
        publication.read(tmp_path)


@pytest.mark.parametrize("length", [0, 20, CONTENTS, -1])
def test_what_is_cut_off_is_damaged(tmp_path: Path, writer: Writer, snapshot: Snapshot, length: int) -> None:
    writer.publish(snapshot, Moments(1.0))
    file = tmp_path / "snapshot"
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(Damaged):
        publication.read(tmp_path)


def test_no_bit_can_change_unnoticed(tmp_path: Path, writer: Writer, snapshot: Snapshot) -> None:
    writer.publish(snapshot, Moments(1.0, 2.0, 3.0, 4.0))
    file = tmp_path / "snapshot"
    whole, dice = file.read_bytes(), random.Random(1)
    head = range(24 * 8, (CONTENTS + 64) * 8)
    for bit in [*dice.sample(head, 200), *dice.sample(range(head.start, len(whole) * 8), 200)]:
        if 24 * 8 <= bit < 32 * 8:
            continue  # the version: another number of the same content
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        with pytest.raises(Damaged):
            publication.read(tmp_path)


def test_moments_that_are_still_to_come_are_damaged(
    tmp_path: Path, writer: Writer, snapshot: Snapshot
) -> None:
    later = publication.now() + 3600
    writer.publish(snapshot, Moments(later, store_asked_at=later))
    with pytest.raises(Damaged):
        publication.read(tmp_path)


def test_what_is_damaged_is_published_again_for_old_readers_and_new_ones(
    tmp_path: Path, writer: Writer, snapshot: Snapshot
) -> None:
    version = writer.publish(snapshot, Moments(1.0))
    known = publication.read(tmp_path)
    assert writer.repair(Moments(1.0)) is None
    file = tmp_path / "snapshot"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    repaired = writer.repair(Moments(1.0))
    assert repaired is not None
    assert repaired > version
    for reader in (known, None):
        found = publication.read(tmp_path, reader)
        assert found is not None
        assert (found.version, found.snapshot) == (repaired, snapshot)
