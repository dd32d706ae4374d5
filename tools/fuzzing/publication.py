"""The reader of what is published: each input gives what was written, or is known to be damaged."""

from __future__ import annotations

import random
import tempfile
from functools import cache
from pathlib import Path

from ovirt_placement.inventory.published import publication
from ovirt_placement.inventory.published.publication import Damaged, Moments, Publication
from ovirt_placement.inventory.published.writer import Writer
from ovirt_placement.model import Snapshot
from tests import builders as build

from .damage import damaged

_TOKENS = (b"\x00" * 8, b"\xff" * 8, b"OVPLACE7", b"\x91", b"\xdd\xff\xff\xff\xff", b"\xc1")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir="/dev/shm")


@cache
def _published() -> tuple[bytes, Snapshot, Publication]:
    """What is written to the file, and what a reader knows who has read it."""
    folder = Path(_folder().name)
    snapshot = build.snapshot(build.host("h"), *(build.vm(f"v{number}", "h") for number in range(4)))
    Writer(folder).publish(snapshot, Moments(publication.now(), store_asked_at=publication.now()))
    known = publication.read(folder)
    assert known is not None
    return (folder / publication.FILE_NAME).read_bytes(), snapshot, known


def attempt(chance: random.Random) -> None:
    whole, snapshot, known = _published()
    folder = Path(_folder().name)
    (folder / publication.FILE_NAME).write_bytes(_spoilt(whole, chance))
    for reader in (None, known):
        try:
            found = publication.read(folder, reader)
        except Damaged:
            continue
        assert found is None or found.snapshot == snapshot


def _spoilt(whole: bytes, chance: random.Random) -> bytes:
    """Most often in the head, where a few bytes say where all others are."""
    if chance.random() < 0.5:
        head = chance.choice((32, 88, 200))
        return damaged(whole[:head], _TOKENS, chance, 2) + whole[head:]
    return damaged(whole, _TOKENS, chance)
