"""An engine to ask, and a store's URL for tests that must hold on SQLite and on PostgreSQL alike."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ovirt_placement.config import Config
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
    """Of each client of that engine; a service asks it by itself but rarely."""
    return loaded(configured(tmp_path, engine))


@pytest.fixture(scope="session")
def one_server() -> Iterator[str]:
    """PostgreSQL takes a second to start: once for all tests."""
    with postgresql() as url:
        yield url


@pytest.fixture
def server(one_server: str) -> Iterator[str]:
    """PostgreSQL, empty."""
    yield one_server
    with database(one_server) as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    # What a test has left open knows that its tables are there: the next one must not share it.
    from ovirt_placement.store.sql.database import _opened

    _opened.clear()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.system)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    address: str = request.getfixturevalue("server")
    return address
