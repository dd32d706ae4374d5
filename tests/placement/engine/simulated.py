"""A simulated engine, and a connection to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.model import Snapshot
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server, serve
from tests.placement.engine_server import connected

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@contextmanager
def simulated(state: Snapshot, **served: Any) -> Iterator[tuple[Engine, Server, EngineConnection]]:
    """And the server, which may be given a certificate or another password."""
    engine = Engine.from_snapshot(state, clock=START, settings=PROMPT)
    server = serve(engine, **served)
    try:
        with connected(server.api_url) as connection:
            yield engine, server, connection
    finally:
        server.close()
