"""An engine for each module of these tests, and a place for what they install."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.world import served
from tests.paths import CHECKOUT


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("client")


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[str]:
    """The URL of an engine's API; `ca.pem` in the folder is whom its certificate comes from."""
    with served(folder) as url:
        yield url


@pytest.fixture(scope="session")
def installed() -> Path:
    """Where clients are installed: `.work` of this checkout, which outlives a run."""
    place = CHECKOUT / ".work" / "clients"
    place.mkdir(parents=True, exist_ok=True)
    return place
