"""A small engine behind a running server, and the unmodified SDK connected to it."""

from collections.abc import Iterator
from datetime import UTC, datetime

import ovirtsdk4
import pytest

from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server, serve
from tests.simulator.http.world import WORLD


@pytest.fixture
def engine() -> Engine:
    """An engine that reports everything at once and in order."""
    return Engine.from_snapshot(WORLD, clock=datetime(2026, 3, 1, 12, tzinfo=UTC), settings=PROMPT)


@pytest.fixture
def server(engine: Engine) -> Iterator[Server]:
    running = serve(engine)
    yield running
    running.close()


@pytest.fixture
def sdk(server: Server) -> Iterator[ovirtsdk4.Connection]:
    connection = ovirtsdk4.Connection(url=server.api_url, username="admin@internal", password="password")
    yield connection
    connection.close()
