"""Engines for `setup`: each has asked a proxy for its units."""

from collections.abc import Iterator

import pytest

from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.cli.setup.policies import STATE


@pytest.fixture
def live(starting: Starting) -> Iterator[LiveEngine]:
    with starting(STATE) as running:
        yield running
