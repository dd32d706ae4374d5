"""A real proxy in a process of its own, and what its units are shown: one of each for all tests of a file."""

from collections.abc import Iterator
from typing import Any
from xmlrpc.client import ServerProxy

import pytest

from tests.integration.bursts import Scene
from tests.plugins.proxy_process import proxy_url
from tests.plugins.published import WITHOUT_PAST, Publisher


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """In which decisions count for those that follow."""
    publisher = Publisher(tmp_path_factory.mktemp("published"))
    with proxy_url(publisher.environment) as url:
        yield Scene(url, publisher)


@pytest.fixture(scope="module")
def publisher(tmp_path_factory: pytest.TempPathFactory) -> Publisher:
    """By which each question is one by itself."""
    return Publisher(tmp_path_factory.mktemp("published"), inventory=WITHOUT_PAST)


@pytest.fixture(scope="module")
def url(publisher: Publisher) -> Iterator[str]:
    with proxy_url(publisher.environment) as url:
        yield url


@pytest.fixture(scope="module")
def proxy(url: str) -> Iterator[Any]:
    with ServerProxy(url) as client:
        yield client
