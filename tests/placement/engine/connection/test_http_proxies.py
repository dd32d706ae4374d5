"""The engine is asked through the HTTP proxy that the usual variables name, and past it where they say so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from ovirt_placement.engine.connection.exchanges import Trust, ask_once
from ovirt_placement.engine.connection.failures import Unanswered
from tests.placement.engine.connection.test_log_in_answers import Answering, response
from tests.placement.sockets import refusing_port

SECONDS = 20
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def asked(proxy: Answering, url: str) -> bool:
    before = count(proxy)
    with suppress(Unanswered):
        ask_once(url, {"a": "b"}, {}, trust=Trust(None, insecure=False), seconds=SECONDS)
    return count(proxy) > before


def count(proxy: Answering) -> int:
    """The requests, but for log-ins of other tests, which had its port before."""
    return sum(b"/ovirt-engine/" not in request for request in proxy.requests)


@pytest.fixture(scope="module")
def proxy() -> Iterator[Answering]:
    """One that refuses what it is asked for."""
    made = Answering(lambda: iter([response(b"", "502 Bad Gateway")]))
    yield made
    made.close()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with refusing_port() as held:
        yield held


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Only these variables say something of proxies."""
    with pytest.MonkeyPatch.context() as patch:
        for name in VARIABLES:
            patch.delenv(name, raising=False)
            patch.delenv(name.upper(), raising=False)
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("written", ["{}", "http://user:secret@{}/"])
def test_a_variable_counts_for_its_scheme_and_not_for_what_is_left_out(
    proxy: Answering, port: int, scheme: str, written: str
) -> None:
    url, address = f"{scheme}://127.0.0.1:{port}/", written.format(f"127.0.0.1:{proxy.port}")
    with environment(**{f"{scheme}_proxy": address}):
        assert asked(proxy, url)
    with environment(**{f"{scheme}_proxy": address}, no_proxy="localhost, 127.0.0.0/8"):
        assert not asked(proxy, url)
    with environment(**{{"http": "https_proxy", "https": "http_proxy"}[scheme]: address}):
        assert not asked(proxy, url)


def test_a_proxy_that_is_away_is_no_request(port: int) -> None:
    for proxy in (f"http://127.0.0.1:{port}", "http://no-such-proxy.invalid:3128"):
        with environment(https_proxy=proxy), pytest.raises(Unanswered, match="HTTP proxy") as unanswered:
            ask_once("https://engine.invalid/", {}, {}, trust=Trust(None, insecure=False), seconds=SECONDS)
        assert unanswered.value.cause.name == "UNSENT"


@pytest.mark.parametrize(
    "junk", ["http://127.0.0.1:junk", "http://", "nothing://127.0.0.1:1", "http://[::1", "::::"]
)
def test_a_proxy_that_is_none_is_an_error_that_is_sorted(junk: str) -> None:
    with environment(https_proxy=junk), pytest.raises(Unanswered):
        ask_once("https://engine.invalid/", {}, {}, trust=Trust(None, insecure=False), seconds=SECONDS)
