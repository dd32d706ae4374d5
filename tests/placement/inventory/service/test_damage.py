"""The running service repairs what it published, however it was damaged; until then readers read no less."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ovirt_placement import inventory
from ovirt_placement.config import Config
from ovirt_placement.inventory.client.current import known
from ovirt_placement.inventory.published import layout, publication
from ovirt_placement.inventory.published.publication import Damaged
from ovirt_placement.model import Snapshot
from tests.pages import page_named_in, samples
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import configured, ended, loaded, readings, running
from tests.proxy.running import eventually

REPAIRS = ("ovirt_placement_inventory_repairs_total",)


def flipped(at: int) -> Callable[[Path], None]:
    def flip(file: Path) -> None:
        with file.open("rb+") as opened:
            byte = os.pread(opened.fileno(), 1, at)
            os.pwrite(opened.fileno(), bytes([byte[0] ^ 1]), at)

    return flip


def cut(length: int) -> Callable[[Path], None]:
    return lambda file: os.truncate(file, length)


def read(directory: Path) -> Snapshot | None:
    try:
        found = publication.read(directory)
    except Damaged:
        return None
    return None if found is None else found.snapshot


@pytest.mark.system
def test_a_reader_decides_on_what_is_published_whichever_byte_of_the_header_was_damaged(
    engine: EngineServer, file: Path, config: Config
) -> None:
    with running(file) as service:
        published = config.inventory.directory / "snapshot"
        before = inventory.snapshot(config=config, max_age=60)
        for at in range(layout.TABLE_OFFSET):
            flipped(at)(published)
            found = known(config=config, max_age=60, deadline=30)
            assert found.snapshot == before, at
            assert found.publication is not None, at
        assert readings(engine) == 1, "nobody had to read the engine"
        ended(service)


@pytest.mark.system
@pytest.mark.parametrize(
    "damage",
    [*(flipped(at) for at in (0, 8, 24, 32, 40, 88, 96, 21_900)), *(cut(at) for at in (0, 7, 40, 1 << 30))],
)
def test_nobody_has_to_ask_for_a_repair(
    engine: EngineServer, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    file = configured(tmp_path, engine, metrics='"127.0.0.1:0"')
    directory = loaded(file).inventory.directory
    with running(file) as service:
        page = page_named_in(service.log)
        before = read(directory)
        assert samples(page)[REPAIRS] == 0
        damage(directory / "snapshot")
        eventually(lambda: samples(page)[REPAIRS] == 1)
        assert read(directory) == before
        assert readings(engine) == 1
        assert "what was published was damaged" in ended(service)


def test_what_cannot_be_repaired_is_read_from_the_engine(file: Path, config: Config) -> None:
    """A directory in the file's place cannot be replaced by a file."""
    with running(file) as service:
        before = inventory.snapshot(config=config, max_age=60)
        published = config.inventory.directory / "snapshot"
        published.unlink()
        published.mkdir()
        (published / "something").touch()
        for _ in range(2):
            found = known(config=config, max_age=0, deadline=30)
            assert found.snapshot == before
            assert found.publication is None
        assert "cannot publish" in ended(service)


def test_who_may_not_read_what_is_published_reads_the_engine(
    file: Path, config: Config, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an update of half of the parts: the service finds nothing wrong."""
    with running(file) as service:
        monkeypatch.setattr(layout, "MAGIC", b"OVPLACE9")
        for _ in range(2):
            assert known(config=config, max_age=60, deadline=30).publication is None
        assert caplog.text.count("cannot be read: the engine is") == 1
        ended(service)
