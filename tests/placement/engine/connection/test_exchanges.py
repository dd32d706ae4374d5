"""Whatever answers or stands between, a request ends in time, holds nothing, and users read what to do."""

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import repeat, takewhile
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine import xml
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.exchanges import Limits, Trust, ask_once
from ovirt_placement.engine.connection.failures import EngineAway, EngineSetupError, Unanswered
from ovirt_placement.engine.topology import read_snapshot
from ovirt_service.errors import UserError
from tests.examples import examples
from tests.placement.engine_server import API, EngineServer, connected, serving
from tests.placement.sockets import refusing_port

LOCKED = "Cannot authenticate user 'admin@internal': The account is locked. Try again in 59 minutes."


class Answering:
    """Answers each connection with the same pieces, and counts the requests."""

    def __init__(self, pieces: Callable[[], Iterator[bytes]]) -> None:
        self._pieces = pieces
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.requests: list[bytes] = []
        self._thread = threading.Thread(target=self._serve)
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
                    self.requests.append(request_on(connection))
                    for piece in self._pieces():
                        connection.sendall(piece)


def request_on(connection: socket.socket) -> bytes:
    """Take a request in whole: one that closes with a rest unread takes back what it has answered."""
    with connection.makefile("rb") as stream:
        lines = [*takewhile(bytes.strip, stream)]
        lengths = (line.lower().partition(b"content-length:") for line in lines)
        stream.read(next((int(length) for _, found, length in lengths if found), 0))
    return b"".join(lines)


@contextmanager
def answered(
    pieces: Callable[[], Iterator[bytes]], timeout: float = 30
) -> Iterator[tuple[Answering, EngineConnection]]:
    server = Answering(pieces)
    known = EngineSettings(
        url=f"http://127.0.0.1:{server.port}{API}", username="admin@internal", timeout_seconds=timeout
    )
    # Of no other server: a password that is refused is remembered, and ports are used again.
    password = uuid4().hex
    try:
        with EngineConnection(known, {"OVIRT_PASSWORD": password}) as connection:
            yield server, connection
    finally:
        server.close()


def response(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = (f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "Connection: close", "", "")
    return "\r\n".join(lines).encode() + body


SAID = {"error_code": "access_denied", "error": LOCKED}


@pytest.mark.parametrize("said", [SAID, [SAID], {"error": "access_denied", "error_description": LOCKED}])
def test_a_locked_account_is_named_as_the_engine_does_and_not_tried_again(said: object) -> None:
    answer = response(json.dumps(said).encode(), "400 Bad Request")
    with answered(lambda: iter([answer])) as (server, connection):
        for _ in range(3):
            with pytest.raises(EngineSetupError, match=r"refuses admin@internal: .*The account is locked"):
                connection.get("/vms")
        assert len(server.requests) == 1


def test_a_netrc_says_nothing_of_who_we_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login other password other\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with answered(lambda: iter([response(b"{}")])) as (server, connection):
        with pytest.raises(EngineSetupError):
            connection.get("/vms")
        (request,) = server.requests
    assert b"accept: application/json" in request.lower()
    assert b"authorization" not in request.lower()


MOVED = [
    response(b"", status, "Location: /elsewhere")
    for status in ("301 Moved", "302 Found", "303 See Other", "307 Moved", "308 Moved")
]
WITHOUT_TOKEN = [
    b"", b"<html>", b"[]", b"{}", b"null", b"7", b'"error"', b'["error"]', b"[" * 100_000, b"\xff\xfe",
    b'{"access_token": 7}', b'{"access_token": "a\\r\\nb"}', '{"access_token": "ä"}'.encode(),
]  # fmt: skip


@pytest.mark.parametrize("answer", [*MOVED, *map(response, WITHOUT_TOKEN)])
def test_an_answer_without_a_token_is_no_engines_and_a_password_follows_no_redirection(answer: bytes) -> None:
    with answered(lambda: iter([answer])) as (server, connection):
        with pytest.raises(EngineSetupError, match="not an oVirt engine's API"):
            connection.get("/vms")
        assert len(server.requests) == 1


def endless() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    yield from repeat(b" " * 65536)


def test_an_answer_that_is_too_large_is_interrupted() -> None:
    with answered(endless) as (_, connection), pytest.raises(EngineAway, match="larger than 1 MiB"):
        connection.get("/vms")


@pytest.mark.system
@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_an_answer_that_trickles_in_is_interrupted_in_time(beginning: bytes) -> None:
    over = threading.Event()

    def trickling() -> Iterator[bytes]:
        yield beginning
        while not over.wait(0.05):
            yield b"x"

    began = time.monotonic()
    with (
        answered(trickling, timeout=1) as (_, connection),
        pytest.raises(EngineAway, match="no answer within 1 s"),
    ):
        connection.get("/vms")
    over.set()
    assert time.monotonic() - began < 20


JUNK = st.binary(max_size=60)


@settings(max_examples=examples(200))
@given(
    st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=200).map(lambda junk: b"HTTP/1.1 200 OK\r\n" + junk),
        JUNK.map(lambda junk: b"HTTP/1.1 200 OK\r\nContent-Length: " + junk + b"\r\n\r\n{}"),
        JUNK.map(lambda junk: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + junk + b"\r\n{}"),
        JUNK.map(lambda junk: response(junk, "200 OK", "Content-Encoding: gzip")),
        JUNK.map(lambda junk: b"HTTP/1.1 302 Found\r\nLocation: " + junk + b"\r\n\r\n"),
    )
)
def test_junk_is_an_error_that_is_sorted(junk: bytes) -> None:
    with answered(lambda: iter([junk])) as (_, connection), pytest.raises(UserError):
        connection.get("/vms")


@pytest.mark.parametrize("cut", [20, 35, 50])
def test_an_answer_whose_header_ends_early_is_lost_and_nothing_else_is_logged(
    cut: int, caplog: pytest.LogCaptureFixture
) -> None:
    answer = response(b"{}", "200 OK", "X-A: b")[:cut]
    with (
        answered(lambda: iter([answer])) as (_, connection),
        pytest.raises(EngineAway, match="the engine does not answer"),
    ):
        connection.get("/vms")
    assert not caplog.records


SECONDS = 20
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def asked_once(url: str, **form: str) -> None:
    ask_once(url, form, {}, trust=Trust(None, insecure=False), seconds=SECONDS)


def passes(proxy: Answering, url: str) -> bool:
    """Whether it gets a request, but for log-ins of other tests, which had its port before."""

    def count() -> int:
        return sum(b"/ovirt-engine/" not in request for request in proxy.requests)

    before = count()
    with suppress(Unanswered):
        asked_once(url, a="b")
    return count() > before


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
        assert passes(proxy, url)
    with environment(**{f"{scheme}_proxy": address}, no_proxy="localhost, 127.0.0.0/8"):
        assert not passes(proxy, url)
    with environment(**{{"http": "https_proxy", "https": "http_proxy"}[scheme]: address}):
        assert not passes(proxy, url)


def test_a_proxy_that_is_away_is_no_request(port: int) -> None:
    for proxy in (f"http://127.0.0.1:{port}", "http://no-such-proxy.invalid:3128"):
        with environment(https_proxy=proxy), pytest.raises(Unanswered, match="HTTP proxy") as unanswered:
            asked_once("https://engine.invalid/")
        assert unanswered.value.cause.name == "UNSENT"


@pytest.mark.parametrize(
    "junk", ["http://127.0.0.1:junk", "http://", "nothing://127.0.0.1:1", "http://[::1", "::::"]
)
def test_a_proxy_that_is_none_is_an_error_that_is_sorted(junk: str) -> None:
    with environment(https_proxy=junk), pytest.raises(Unanswered):
        asked_once("https://engine.invalid/")


# No answer takes more memory or time than an engine's own, and none holds up the end.
LARGE = b"<vms>" + b" " * 3_000_000 + b"</vms>"


@contextmanager
def limited(body: bytes, limits: Limits) -> Iterator[EngineConnection]:
    """An engine that shows VMs so, asked with these limits."""
    server = EngineServer(answer=lambda path: (200, body) if path == "/vms" else None)
    with serving(server), connected(server, limits=limits) as connection:
        yield connection


@pytest.mark.parametrize(
    ("body", "limits", "complaint"),
    [
        (gzip.compress(LARGE), Limits(10_000_000, 2_000_000), "larger than 1 MiB unpacked"),
        (LARGE, Limits(1_000_000, 10_000_000), "larger than 1000000 bytes"),
        (LARGE, Limits(10_000_000, 2_000_000), "larger than 1 MiB unpacked"),
    ],
    ids=["compressed", "as sent", "plain"],
)
def test_an_answer_is_interrupted_where_it_is_too_large(body: bytes, limits: Limits, complaint: str) -> None:
    with limited(body, limits) as connection:
        with pytest.raises(EngineAway, match=complaint):
            connection.get("/vms")
        assert connection.get("/hosts")  # the next one is none the worse for it


def test_within_the_limits_a_compressed_answer_is_whole() -> None:
    with limited(gzip.compress(LARGE), Limits(10_000, 4_000_000)) as connection:
        assert connection.get("/vms") == LARGE


@pytest.mark.parametrize("filling", [b"<a/>" * 12_000, b"<a x='' y=''/>" * 4_000])
def test_elements_are_counted_before_they_are_made(filling: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "_MOST_NODES", 10_000)
    with (
        limited(b"<vms>" + filling + b"</vms>", Limits(10**6, 10**6)) as connection,
        pytest.raises(EngineSetupError, match="more than 10,000 elements"),
    ):
        read_snapshot(connection)


@pytest.fixture
def hanging() -> Iterator[tuple[EngineServer, threading.Event]]:
    """An engine that takes requests and answers none until the test is over."""
    entered, over = threading.Event(), threading.Event()

    def hang(path: str) -> None:
        entered.set()
        over.wait(60)

    with serving(EngineServer(answer=hang)) as server:
        yield server, entered
        over.set()


@pytest.mark.system
@pytest.mark.timing
def test_the_end_breaks_off_what_is_under_way(hanging: tuple[EngineServer, threading.Event]) -> None:
    server, entered = hanging
    connection = connected(server, limits=Limits(10**6, 10**6))
    with ThreadPoolExecutor() as askers:
        asker = askers.submit(connection.get, "/vms")
        assert entered.wait(30)
        began = time.monotonic()
        connection.close()
        with pytest.raises(EngineAway, match="is not waited for"):
            asker.result(30)
    assert time.monotonic() - began < 2


@pytest.mark.system
@pytest.mark.timing
def test_a_log_out_that_is_not_answered_is_waited_for_but_briefly() -> None:
    over = threading.Event()
    with serving(EngineServer()) as server:
        server.log_out = lambda: over.wait(60)
        connection = connected(server, limits=Limits(10**6, 10**6))
        assert connection.get("/vms")
        began = time.monotonic()
        connection.close()
        assert time.monotonic() - began < 2
        over.set()
