"""What tests of the enforcer's rooms share: an engine of their own behind a server."""

from collections.abc import Iterator

import pytest

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server, serve


@pytest.fixture
def server(engine: Engine) -> Iterator[Server]:
    """Serves the engine of the test's own file."""
    running = serve(engine)
    yield running
    running.close()
