"""A snapshot to publish, and a writer with a folder to itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from ovirt_placement.inventory.published.writer import Writer
from ovirt_placement.model import Snapshot
from tests.placement.model.full_state import full_state, loaded


@pytest.fixture
def snapshot() -> Snapshot:
    read: Snapshot = loaded(full_state())
    return read


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path)
