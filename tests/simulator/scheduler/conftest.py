"""Gives tests a scheduler proxy of their own."""

from collections.abc import Iterator

import pytest

from tests.simulator.scheduler.proxy import Proxy, running_proxy


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with running_proxy() as running:
        yield running
