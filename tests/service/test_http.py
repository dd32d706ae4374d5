"""HTTP: limits of requests and connections, addresses to listen on, and the page of metrics."""

import asyncio
import http.client
import itertools
import socket
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from prometheus_client import Counter

from ovirt_service import metrics
from ovirt_service.errors import UserError
from ovirt_service.http.addresses import listening_socket, redacted, shown, split_address
from ovirt_service.http.connection import (
    TEXT,
    Connection,
    Head,
    HttpError,
    HttpRequest,
    RequestParser,
    Respond,
    Response,
)
from ovirt_service.http.listener import Room
from tests.pages import page_named_in, samples

LONGEST = 100
_HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize("length", [LONGEST - 1, LONGEST, LONGEST + 1])
def test_a_body_may_be_so_long(length: int) -> None:
    parser = RequestParser(LONGEST)
    parser.buffer += _HEAD + b"Content-Length: %d\r\n\r\n" % length
    if length > LONGEST:
        with pytest.raises(HttpError, match="longer") as refused:
            parser.next()
        assert refused.value.status == 413
    else:
        assert parser.next() is None
        parser.buffer += b"x" * length
        request = parser.next()
        assert request is not None
        assert request.body == b"x" * length


class Guest:
    """One that has not called, and the answer that it got."""

    unsent = 0
    has_called = False

    def __init__(self, waits_for_seconds: float | None) -> None:
        self.waiting_since = None if waits_for_seconds is None else time.monotonic() - waits_for_seconds
        self.aborted = False

    @property
    def idle(self) -> bool:
        return self.waiting_since is not None

    def end(self) -> None:
        self.aborted = True

    def abort(self) -> None:
        self.aborted = True


MOST = 5


@pytest.mark.parametrize(("standing", "entering"), [*itertools.product(range(MOST + 1), range(MOST + 2))])
@pytest.mark.parametrize("waits_for_seconds", [None, 0.0, 3600.0])
def test_one_more_comes_where_there_is_room_with_those_about_to_or_for_one_of_no_use(
    standing: int, entering: int, waits_for_seconds: float | None
) -> None:
    closed: list[int] = []
    room = Room(MOST, lambda: closed.append(1))
    guests = [Guest(waits_for_seconds if number == 0 else None) for number in range(standing)]
    for guest in guests:
        room.add(guest, may_call=True)
    has_room = standing + entering < MOST
    goes = not has_room and standing > 0 and waits_for_seconds == 3600.0
    assert room.make(entering) == (has_room or goes)
    assert [guest.aborted for guest in guests] == [goes and at == 0 for at in range(standing)]
    assert (len(room), len(closed)) == (standing - goes, int(goes))


REQUEST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx"


class Served:
    """One connection whose answers are given when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[Respond] = []

    def answer(self, request: HttpRequest, respond: Respond) -> None:
        self.waiting.append(respond)

    async def until_asked(self) -> Respond:
        while not self.waiting:
            await asyncio.sleep(0)
        return self.waiting.pop()


async def _serve(served: Served, accepted: socket.socket) -> None:
    def check(head: Head) -> None:
        pass

    loop = asyncio.get_running_loop()
    connection = Connection(Room(1, lambda: None), True, check, served.answer, 1 << 10)
    await loop.connect_accepted_socket(lambda: connection, accepted)


async def _received(client: socket.socket) -> bytes:
    received = b""
    while more := await asyncio.get_running_loop().sock_recv(client, 1 << 10):
        received += more
    return received


def _run(sent: bytes, *, answers: int) -> bytes:
    """What a client receives that sends this, then ends its side while the first answer goes."""

    async def run() -> bytes:
        client, accepted = socket.socketpair()
        client.setblocking(False)
        with client:
            served = Served()
            client.sendall(sent)
            await _serve(served, accepted)
            for number in range(answers):
                respond = await served.until_asked()
                if number == 0:
                    # The loop sees the end of the stream in the same round as the answer.
                    client.shutdown(socket.SHUT_WR)
                respond(Response(b"yes", TEXT))
            return await _received(client)

    return asyncio.run(asyncio.wait_for(run(), 10))


@pytest.mark.parametrize(("sent", "answers"), [(REQUEST * 3, 3), (REQUEST + REQUEST[:20], 1)])
def test_requests_that_wait_are_answered_after_the_end_and_half_a_one_keeps_nothing_open(
    sent: bytes, answers: int
) -> None:
    assert _run(sent, answers=answers).count(b"HTTP/1.1 200") == answers


def test_host_and_port() -> None:
    for address, parts in (
        *(("127.0.0.1:80", ("127.0.0.1", 80)), ("[::1]:0", ("::1", 0))),
        ("localhost:65535", ("localhost", 65535)),
    ):
        assert split_address(address) == parts
    for address in ("", "127.0.0.1", ":80", "host:", "host:x", "host:65536", "host:70000"):
        with pytest.raises(UserError, match=r"^\[part\] listen '.*' is not HOST:PORT"):
            split_address(address, "[part] listen")


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_connections_send_at_once(family: int, host: str) -> None:
    with listening_socket(host, 0, family, backlog=1) as listening:
        client = socket.create_connection(listening.getsockname()[:2])
        accepted, _ = listening.accept()
        with client, accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


HOOK = "https://me:geheim@hooks.example:8443/services/geheim?key=geheim#geheim"


@pytest.mark.parametrize(
    ("url", "printed"),
    [
        (HOOK, "https://hooks.example:8443"),
        ("http://[::1]:9093/api/v2/alerts", "http://[::1]:9093"),
        ("postgresql+psycopg://me:geheim@/placement", "an address that is none"),
        ("https://geheim@host:port/", "an address that is none"),
        ("geheim", "an address that is none"),
    ],
)
def test_an_address_is_printed_without_what_is_secret(url: str, printed: str) -> None:
    assert shown(url) == printed


@pytest.mark.parametrize(
    "said",
    [
        "Cannot POST /services/geheim",
        "Failed to parse: http://me:ge heim/geheim@proxy:3128",
        "<ProtocolError for me:geheim@hooks.example/services/geheim: 404 Not Found>",
    ],
)
def test_what_others_say_of_an_address_is_printed_without_it(said: str) -> None:
    assert "geheim" not in redacted(said, "https://me:geheim@hooks.example/services/geheim")


@pytest.fixture
def serve(caplog: pytest.LogCaptureFixture) -> Callable[[metrics.Instruments], str]:
    """Serves these, and gives the address that is logged."""

    def serve(instruments: metrics.Instruments) -> str:
        caplog.set_level("INFO")
        metrics.serve(instruments.registry, "127.0.0.1:0", "[part] metrics")
        return page_named_in(caplog.text)

    return serve


def test_what_is_counted_can_be_read_alongside_what_the_process_takes(
    serve: Callable[[metrics.Instruments], str],
) -> None:
    instruments = metrics.Instruments("part")
    Counter("things", "Things", registry=instruments.registry).inc(3)
    found = {name: value for (name, *_), value in samples(serve(instruments)).items()}
    assert (found["things_total"], found["part_build_info"]) == (3, 1)
    assert not any(name.endswith("_created") for name in found)
    assert found["process_resident_memory_bytes"] > 0


def test_who_connects_and_says_nothing_takes_no_thread_and_holds_up_nobody(
    serve: Callable[[metrics.Instruments], str],
) -> None:
    url = urlsplit(serve(metrics.Instruments("part")))
    at, before = (url.hostname or "", url.port or 0), threading.active_count()
    with ExitStack() as all_open:
        for number in range(100):
            silent = all_open.enter_context(socket.create_connection(at))
            if number % 2:
                silent.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        with urllib.request.urlopen(url.geturl()) as response:
            assert b"part_build_info" in response.read()
        assert threading.active_count() == before
    for path, status in (("/other", 404), ("/metrics?name[]=part_build_info", 200)):
        connection = http.client.HTTPConnection(*at)
        connection.request("GET", path)
        assert connection.getresponse().status == status
        connection.close()


def test_one_of_several_engines_is_a_label_of_all() -> None:
    registry = metrics.Instruments("part", "red").registry
    Counter("things", "Things", ["kind"], registry=registry).labels("small").inc()
    found = [sample for family in registry.collect() for sample in family.samples]
    assert {sample.labels.get("engine") for sample in found} == {"red"}
    assert registry.get_sample_value("things_total", {"engine": "red", "kind": "small"}) == 1
    (asked_for,) = registry.restricted_registry(["things_total"]).collect()
    assert [sample.labels for sample in asked_for.samples] == [{"engine": "red", "kind": "small"}]


@pytest.mark.parametrize(
    ("version", "wish", "stays"),
    [
        *(("HTTP/1.1", "", True), ("HTTP/1.1", "Close", False), ("HTTP/1.1", "TE, close", False)),
        *(("HTTP/1.0", "", False), ("HTTP/1.0", "TE, Keep-Alive", True)),
    ],
)
def test_a_connection_stays_unless_one_of_the_wishes_is_that_it_ends(
    version: str, wish: str, stays: bool
) -> None:
    assert Head("GET", "/", version, {"connection": wish}).keeps_alive is stays


def test_an_address_that_is_taken_or_none_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UserError, match=rf"^\[part\] metrics '{address}': Address already in use$"):
            metrics.serve(metrics.Instruments("part").registry, address, "[part] metrics")
    with pytest.raises(UserError, match=r"^\[part\] metrics '9090' is not HOST:PORT"):
        metrics.serve(metrics.Instruments("part").registry, "9090", "[part] metrics")
