"""HTTP as the engine's client speaks it, and as a hostile or clumsy client does."""

import socket
import time
import xmlrpc.client
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

import pytest

from ovirt_scheduler_proxy.xmlrpc import Fault, read_call

from ..running import RunningProxy, serving, units

PLUGINS = units(Keep="return hosts", Hang="import time; time.sleep(60)")

CONFIG = """
[server]
request_seconds = 1
idle_seconds = 2
body_mib = 1
most_elements = 5000
most_connections = 70
allowed_hosts = ["engine.example"]
[calls]
deadline_seconds = 2
"""

BODY = xmlrpc.client.dumps((["Keep"], ["h1", "h2"], "vm", {}), "runFilters").encode()


@dataclass
class Received:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> dict[str, object]:
        (value,), _ = xmlrpc.client.loads(self.body)
        assert isinstance(value, dict)
        return value


class Wire:
    """A bare connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._stream = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def post(self, body: bytes, *headers: str, first: str = "POST / HTTP/1.1") -> None:
        given = {header.split(":")[0].lower() for header in headers}
        lines = [first, *headers]
        if "host" not in given:
            lines.append("Host: 127.0.0.1")
        if "content-type" not in given:
            lines.append("Content-Type: text/xml")
        if "content-length" not in given and "transfer-encoding" not in given:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join([*lines, "", ""]).encode() + body)

    def call(self, *headers: str) -> Received:
        """What a filter answers that keeps all."""
        self.post(BODY, *headers)
        return self.receive()

    def receive(self) -> Received:
        status = int(self._stream.readline().split()[1])
        headers = {}
        while line := self._stream.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        return Received(status, headers, self._stream.read(int(headers.get("content-length", "0"))))

    def closed(self) -> bool:
        try:
            return self._stream.read(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self._stream.close()
        self.socket.close()


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    with serving(tmp_path_factory.mktemp("http"), config=CONFIG, units=PLUGINS) as started:
        yield started


@pytest.fixture
def wire(proxy: RunningProxy) -> Iterator[Wire]:
    with closing(Wire(proxy.port)) as opened:
        yield opened


@contextmanager
def wires(port: int, count: int) -> Iterator[list[Wire]]:
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Wire(port))) for _ in range(count)]


def test_pipelined_requests_are_answered_in_order(wire: Wire) -> None:
    bodies = [xmlrpc.client.dumps((["Keep"], [f"h{n}"], "vm", {}), "runFilters").encode() for n in range(4)]
    for body in bodies:
        wire.post(body)
    received = [wire.receive() for _ in bodies]
    assert [one.value["result"] for one in received] == [[f"h{n}"] for n in range(4)]
    assert all(one.headers["content-type"].startswith("text/xml") for one in received)


def test_a_request_may_come_byte_by_byte(wire: Wire) -> None:
    head = "POST / HTTP/1.1\r\nHost: localhost:1\r\nContent-Type: text/xml\r\n"
    for byte in f"{head}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY:
        wire.send(bytes([byte]))
    assert wire.receive().value["result"] == ["h1", "h2"]


@pytest.mark.parametrize(
    ("first", "header", "closes"),
    [
        ("POST / HTTP/1.0", "X: y", True),
        ("POST / HTTP/1.0", "Connection: keep-alive", False),
        ("POST /RPC2 HTTP/1.1", "Connection: close", True),
        ("POST / HTTP/1.1", "Content-Type: application/xml; charset=utf-8", False),
        ("POST / HTTP/1.1", "Host: engine.example:18781", False),
        ("POST / HTTP/1.1", "Host: [::1]:18781", False),
        ("POST http://127.0.0.1:18781/ HTTP/1.1", "X: y", False),
        ("POST HTTP://localhost HTTP/1.1", "Host: evil.example", False),
        ("POST https://engine.example/RPC2 HTTP/1.1", "X: a\tb", False),
    ],
)
def test_well_formed_variants(wire: Wire, first: str, header: str, closes: bool) -> None:
    wire.post(BODY, header, first=first)
    assert wire.receive().status == 200
    if closes:
        assert wire.closed()
    else:
        assert wire.call().status == 200


@pytest.mark.parametrize(
    ("first", "headers", "body", "status"),
    [
        ("POST / HTTP/1.1", ["Host: evil.example"], BODY, 421),
        ("POST / HTTP/1.1", ["Host: localhost.evil.example"], BODY, 421),
        ("POST / HTTP/1.1", ["Origin: http://evil.example"], BODY, 403),
        ("POST / HTTP/1.1", ["Content-Type: text/plain"], BODY, 415),
        ("POST / HTTP/1.1", ["Content-Type: application/x-www-form-urlencoded"], BODY, 415),
        ("POST / HTTP/1.1", ["Content-Length: 2000000"], b"", 413),
        ("POST / HTTP/1.1", ["Content-Length: -1"], b"", 400),
        ("POST / HTTP/1.1", ["Content-Length: 5", "Content-Length: 6"], b"", 400),
        ("POST / HTTP/1.1", ["Content-Length: 5", "Transfer-Encoding: chunked"], b"", 411),
        ("POST / HTTP/1.1", ["Transfer-Encoding: chunked"], b"0\r\n\r\n", 411),
        ("POST / HTTP/1.1", ["Content-Encoding: br"], b"", 415),
        ("POST / HTTP/1.1", ["Long: " + "x" * 40_000], b"", 431),
        ("POST / HTTP/1.1", ["No header at all"], b"", 400),
        ("POST / HTTP/1.1", ["X: a\0b"], b"", 400),
        ("POST / HTTP/1.1", ["X: a\rHost: evil.example"], b"", 400),
        ("POST / HTTP/1.1", ["X: a\nHost: evil.example"], b"", 400),
        ("POST /\x7f HTTP/1.1", [], BODY, 400),
        ("POST http://evil.example/ HTTP/1.1", ["Host: localhost"], BODY, 421),
        ("POST http://localhost/other HTTP/1.1", [], BODY, 404),
        ("POST / HTTP/2", [], b"", 400),
        ("POST /", [], b"", 400),
        ("POST /other HTTP/1.1", [], BODY, 404),
        ("GET / HTTP/1.1", [], b"", 405),
        ("OPTIONS / HTTP/1.1", ["Content-Length: 0"], b"", 405),
    ],
    ids=lambda value: f"{len(value)} bytes" if isinstance(value, bytes) else None,
)
def test_what_is_refused(wire: Wire, first: str, headers: list[str], body: bytes, status: int) -> None:
    wire.post(body, *headers, first=first)
    received = wire.receive()
    assert received.status == status
    assert b"Traceback" not in received.body
    assert wire.closed()


def test_head_of_the_metrics_has_the_length_of_their_page_and_no_page(wire: Wire) -> None:
    wire.send(b"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    head = b"".join(iter(wire._stream.readline, b"\r\n"))
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"Content-Length: 0" not in head
    assert wire.call().value["result"] == ["h1", "h2"]


def test_a_refusal_of_head_has_no_body_either(wire: Wire) -> None:
    wire.send(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert wire._stream.readline().startswith(b"HTTP/1.1 405 ")
    assert wire._stream.read().endswith(b"\r\n\r\n")


def test_too_many_elements_are_a_fault(wire: Wire) -> None:
    wire.post(xmlrpc.client.dumps((["Keep"], ["h"] * 6000, "vm", {}), "runFilters").encode())
    with pytest.raises(xmlrpc.client.Fault, match="more than 5000 elements"):
        xmlrpc.client.loads(wire.receive().body)


@pytest.mark.parametrize("wrong", ["&#55357;x", "&#1;", "\x01", "\x01x"])
def test_what_would_take_long_to_repair_is_a_fault(wrong: str) -> None:
    call = xmlrpc.client.dumps((["Keep"], ["h1"], "v", {"name": "HERE"}), "runFilters")
    with pytest.raises(Fault, match="not well-formed"):
        read_call(call.replace("HERE", wrong * 20_000).encode(), 200_000)
    _, few = read_call(call.replace("HERE", wrong * 100).encode(), 200_000)
    assert few[3] == {"name": "\ufffdx" * 100 if "x" in wrong else "\ufffd" * 100}


def test_too_many_attributes_are_a_fault() -> None:
    attributes = " ".join(f"a{number}='x'" for number in range(20_000))
    with pytest.raises(Fault, match="more than 10000 attributes"):
        read_call(f"<methodCall {attributes}/>".encode(), 200_000)
    text = "key='x' " * 100
    call = xmlrpc.client.dumps(([], ["h1"], "v", {"text": text}), "runFilters").encode()
    assert read_call(call, 200_000)[1][3] == {"text": text}


@pytest.mark.system
@pytest.mark.timing
def test_slow_and_silent_clients_are_cut_off(proxy: RunningProxy) -> None:
    with wires(proxy.port, 2) as (slow, silent):
        slow.send(b"POST / HTTP/1.1\r\nHost:")
        started = time.monotonic()
        assert slow.closed()
        assert silent.closed()
        assert 0.9 < time.monotonic() - started < 8


@pytest.mark.system
@pytest.mark.timing
def test_connections_are_accepted_at_once_whatever_the_workers_do(proxy: RunningProxy) -> None:
    with wires(proxy.port, 60), wires(proxy.port, 4) as hanging:
        for wire in hanging:
            wire.post(xmlrpc.client.dumps((["Hang"], ["h"], "vm", {}), "runFilters").encode())
        for _ in range(20):
            started = time.monotonic()
            with closing(Wire(proxy.port)) as wire:
                wire.post(xmlrpc.client.dumps((), "discover").encode())
                assert wire.receive().status == 200
                assert time.monotonic() - started < 1
        assert {wire.receive().status for wire in hanging} == {200}
