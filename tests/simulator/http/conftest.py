"""A small engine behind a running server, and the unmodified SDK connected to it."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import ovirtsdk4
import pytest
from ovirtsdk4 import services

from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server, serve
from tests.simulator.http.plain import Api, request
from tests.simulator.http.world import WORLD


@pytest.fixture
def engine() -> Engine:
    """An engine that reports everything at once and in order."""
    return Engine.from_snapshot(WORLD, clock=datetime(2026, 3, 1, 12, tzinfo=UTC), settings=PROMPT)


@pytest.fixture
def server(engine: Engine) -> Iterator[Server]:
    with closing(serve(engine)) as running:
        yield running


@pytest.fixture
def api(server: Server) -> Api:
    return lambda path, *more, **options: request(f"{server.api_url}/{path}", *more, **options)


@pytest.fixture
def sdk(server: Server) -> Iterator[ovirtsdk4.Connection]:
    with closing(logged_in(server)) as connection:
        yield connection


@pytest.fixture
def system(sdk: ovirtsdk4.Connection) -> services.SystemService:
    return sdk.system_service()


def logged_in(server: Server, user: str = "admin@internal", **options: str) -> ovirtsdk4.Connection:
    return ovirtsdk4.Connection(url=server.api_url, username=user, password="password", **options)
