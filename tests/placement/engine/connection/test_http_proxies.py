"""The log-in takes the HTTP proxy, or none, that curl takes for all else: curl itself says which."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import pycurl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ovirt_placement.engine.connection.exchanges import Trust, post
from ovirt_placement.engine.connection.unanswered import Unanswered
from tests.examples import examples
from tests.placement.sockets import refusing_port

SECONDS = 20
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
REFUSAL = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Proxy:
    """Refuses what it is asked for; keeps what each request asks for."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._asked: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def asked_by(self, ask: Callable[[], object]) -> list[bytes]:
        """The requests that come while this asks, but for log-ins that other tests have left behind."""
        self._asked.clear()
        ask()
        return [line for line in self._asked if b"/ovirt-engine/" not in line]

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(ConnectionError):
                    # The version differs, and with curl's GET the method.
                    line = connection.recv(65536).partition(b" HTTP/")[0]
                    self._asked.append(line.replace(b"POST", b"GET"))
                    connection.sendall(REFUSAL)


def curl_asks(url: str) -> None:
    curl = pycurl.Curl()
    curl.setopt(pycurl.URL, url)
    curl.setopt(pycurl.TIMEOUT, SECONDS)
    curl.setopt(pycurl.WRITEFUNCTION, len)
    with suppress(pycurl.error):
        curl.perform()
    curl.close()


def we_ask(url: str) -> None:
    with suppress(Unanswered):
        post(url, {"a": "b"}, {}, trust=Trust(None, insecure=False), seconds=SECONDS, ended=lambda: False)


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
@pytest.mark.parametrize(
    "name", ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
)
@pytest.mark.parametrize("written", ["{}", "http://{}/", "user:secret@{}", "http://user:secret@{}"])
def test_a_variable_counts_as_it_does_for_curl(
    proxy: Proxy, port: int, scheme: str, name: str, written: str
) -> None:
    url = f"{scheme}://127.0.0.1:{port}/"
    with environment(**{name: written.format(proxy.address)}):
        asked = proxy.asked_by(lambda: we_ask(url))
        assert asked == proxy.asked_by(lambda: curl_asks(url))
    assert bool(asked) == (name[:5].lower() in (f"{scheme}_proxy"[:5], "all_p") and name != "HTTP_PROXY")


@pytest.mark.parametrize("scheme", ["socks5", "socks5h", "socks4", "socks4a"])
def test_a_proxy_may_speak_socks(port: int, scheme: str) -> None:
    url = f"http://127.0.0.1:{port}/"
    # Of its own: what other tests have left behind asks for other versions.
    with closing(Proxy()) as proxy, environment(all_proxy=f"{scheme}://{proxy.address}"):
        ours, curls = proxy.asked_by(lambda: we_ask(url)), proxy.asked_by(lambda: curl_asks(url))
    version = int(scheme[5])
    # Either may ask once more where the proxy ends the connection early.
    for asked in (ours, curls):
        assert {one[0] for one in asked} == {version}


def test_the_more_special_variable_counts_and_the_one_in_small_letters(proxy: Proxy, port: int) -> None:
    elsewhere = f"http://127.0.0.1:{port}"
    for other, own in (
        ("all_proxy", "https_proxy"),
        ("HTTPS_PROXY", "https_proxy"),
        ("ALL_PROXY", "all_proxy"),
    ):
        with environment(**{other: elsewhere, own: proxy.address}):
            assert len(proxy.asked_by(lambda: we_ask("https://engine.invalid/"))) == 1
            assert len(proxy.asked_by(lambda: curl_asks("https://engine.invalid/"))) == 1


HOSTS = ("127.0.0.1", "[::1]", "localhost", "LocalHost")
WORDS = (
    *("*", "localhost", ".localhost", "LOCALHOST", "localhost.", "host", "ost", "xlocalhost", "a.localhost"),
    *("127.0.0.1", "127.0.0.0/8", "127.0.0.1/32", "126.0.0.0/8", "0.0.1", "127", "::1", "::/64", "fe80::/10"),
    *("localhost:80", "engine.invalid", "", " ", "junk/8", "127.0.0.1/33"),
)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    host=st.sampled_from(HOSTS),
    words=st.lists(st.sampled_from(WORDS), max_size=3),
    separator=st.sampled_from([",", ", ", " ,", ",,"]),
    name=st.sampled_from(["no_proxy", "NO_PROXY"]),
)
def test_what_is_left_out_is_what_curl_leaves_out(
    proxy: Proxy, port: int, host: str, words: list[str], separator: str, name: str
) -> None:
    url = f"http://{host}:{port}/"
    with environment(http_proxy=proxy.address, **{name: separator.join(words)}):
        ours, curls = proxy.asked_by(lambda: we_ask(url)), proxy.asked_by(lambda: curl_asks(url))
    assert len(ours) == len(curls)


@pytest.mark.parametrize(
    "listed", ["lab.invalid", ".lab.invalid", "invalid", "ab.invalid", "engine.lab.invalid."]
)
def test_a_domain_is_left_out_whole(proxy: Proxy, listed: str) -> None:
    url = "https://engine.lab.invalid/"
    with environment(https_proxy=proxy.address, no_proxy=listed):
        ours, curls = proxy.asked_by(lambda: we_ask(url)), proxy.asked_by(lambda: curl_asks(url))
    assert len(ours) == len(curls) == (listed == "ab.invalid")


def test_a_proxy_that_is_away_is_no_request(port: int) -> None:
    trust = Trust(None, insecure=False)
    for proxy in (f"http://127.0.0.1:{port}", "http://no-such-proxy.invalid:3128"):
        with environment(https_proxy=proxy), pytest.raises(Unanswered, match="HTTP proxy") as unanswered:
            post("https://engine.invalid/", {}, {}, trust=trust, seconds=SECONDS, ended=lambda: False)
        assert unanswered.value.cause.name == "UNSENT"


@pytest.mark.parametrize(
    "junk", ["http://127.0.0.1:junk", "http://", "nothing://127.0.0.1:1", "http://[::1", "::::"]
)
def test_a_proxy_that_is_none_is_an_error_that_is_sorted(junk: str) -> None:
    trust = Trust(None, insecure=False)
    with environment(https_proxy=junk), pytest.raises(Unanswered):
        post("https://engine.invalid/", {}, {}, trust=trust, seconds=SECONDS, ended=lambda: False)
