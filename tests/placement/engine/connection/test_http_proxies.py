"""The engine is asked through the HTTP proxy that the usual variables name, and past it where they say so."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from ovirt_placement.engine.connection.exchanges import Trust, ask_once
from ovirt_placement.engine.connection.failures import Unanswered
from tests.placement.sockets import refusing_port

SECONDS = 20
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
REFUSAL = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Proxy:
    """Refuses what it is asked for; counts the requests."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.asked = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(ConnectionError):
                    self.asked += b"/ovirt-engine/" not in connection.recv(65536)  # a log-in of another test
                    connection.sendall(REFUSAL)


def asked(proxy: Proxy, url: str) -> bool:
    before = proxy.asked
    with suppress(Unanswered):
        ask_once(url, {"a": "b"}, {}, trust=Trust(None, insecure=False), seconds=SECONDS)
    return proxy.asked > before


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    made = Proxy()
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
@pytest.mark.parametrize("name", ["http_proxy", "https_proxy", "all_proxy"])
@pytest.mark.parametrize("written", ["{}", "http://{}/", "http://user:secret@{}"])
def test_a_variable_counts_for_its_scheme(
    proxy: Proxy, port: int, scheme: str, name: str, written: str
) -> None:
    with environment(**{name: written.format(proxy.address)}):
        assert asked(proxy, f"{scheme}://127.0.0.1:{port}/") == (name in (f"{scheme}_proxy", "all_proxy"))


@pytest.mark.parametrize("listed", ["lab.invalid", ".lab.invalid", "engine.lab.invalid", "ab.invalid", "*"])
def test_a_domain_is_left_out_whole(proxy: Proxy, listed: str) -> None:
    with environment(https_proxy=proxy.address, no_proxy=listed):
        assert asked(proxy, "https://engine.lab.invalid/") == (listed == "ab.invalid")


@pytest.mark.parametrize("listed", ["127.0.0.1", "127.0.0.0/8", "10.0.0.0/8"])
def test_a_network_is_left_out(proxy: Proxy, port: int, listed: str) -> None:
    with environment(http_proxy=proxy.address, no_proxy=f"localhost, {listed}"):
        assert asked(proxy, f"http://127.0.0.1:{port}/") == (listed == "10.0.0.0/8")


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
