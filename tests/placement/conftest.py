"""An engine to ask, and a store's URL for tests that must hold on SQLite and on PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ovirt_placement.config import Config
from ovirt_placement.store.schema import metadata
from tests.placement.databases import database, postgresql
from tests.placement.engine_server import EngineServer, serving
from tests.placement.inventory.running import configured, loaded


@pytest.fixture
def engine() -> Iterator[EngineServer]:
    """The recorded engine; a test may change what it answers."""
    with serving(EngineServer()) as server:
        yield server


@pytest.fixture
def config(tmp_path: Path, engine: EngineServer) -> Config:
    """Of whoever asks that engine; a service asks it by itself but rarely."""
    return loaded(configured(tmp_path, engine))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/store.db"
        return
    address: str = request.getfixturevalue("server")
    yield address
    with database(address) as connection:
        metadata.drop_all(connection)
