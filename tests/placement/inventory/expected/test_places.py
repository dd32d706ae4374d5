"""Traces are left where every process that decides can write, with an inventory service and without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ovirt_placement.config import Config
from ovirt_placement.inventory.expected import places


def configured(directory: Path) -> Config:
    return Config({"inventory": {"directory": str(directory)}}, "a test")


def test_alongside_what_the_inventory_publishes(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    found = places.find(configured(directory))
    assert found == directory / "expected"
    places.make(found)
    places.make(found)
    assert found.stat().st_mode & 0o7777 == 0o2770


def test_where_no_group_may_be_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the kernel answers a unit of systemd that restricts it."""
    change = os.chmod

    def refuse(path: Path, mode: int) -> None:
        if mode & 0o6000:
            raise PermissionError(1, "Operation not permitted")
        change(path, mode)

    monkeypatch.setattr(os, "chmod", refuse)
    places.make(tmp_path / "expected")
    assert (tmp_path / "expected").stat().st_mode & 0o7777 == 0o770


def test_in_memory_where_no_inventory_is_and_for_each_engine_its_own(tmp_path: Path) -> None:
    first = places.find(configured(tmp_path / "one"))
    other = places.find(configured(tmp_path / "other"))
    assert first is not None
    assert first.parent == Path("/dev/shm")
    assert first != other


def test_what_somebody_else_has_put_there_is_left_alone(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    settings = configured(tmp_path / "none")
    place = places.find(settings)
    assert place is not None
    os.symlink(tmp_path, place)
    request.addfinalizer(place.unlink)
    assert places.find(settings) is None
