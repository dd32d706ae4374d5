"""Clients that are allowed to call and are slow at it: they hold up neither other clients nor the end."""

import signal
import socket
import xmlrpc.client
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from ..running import RunningProxy, eventually, serving
from .test_http import BODY, PLUGINS, Wire, wires

pytestmark = pytest.mark.system

#: What must not be waited for takes as long as this; a test that waits for it fails.
LONG = 110
SOON = 30
MOST = 40

CONFIG = f"""
[server]
most_connections = {MOST}
request_seconds = {LONG}
idle_seconds = {LONG}
body_mib = 16
[calls]
deadline_seconds = {LONG}
"""

#: The kernel takes some MiB of an answer that nobody reads.
MANY = [f"{'h' * 990}{number}" for number in range(10_000)]
LARGE = xmlrpc.client.dumps((["Keep"], MANY, "vm", {}), "runFilters").encode()


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[RunningProxy]:
    with serving(tmp_path, config=CONFIG, units=PLUGINS) as started:
        yield started


@contextmanager
def narrow(port: int, count: int = 1) -> Iterator[list[Wire]]:
    """Clients whose machine takes little of an answer before it is read, and that have asked for much."""
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            wire = Wire.__new__(Wire)
            wire.socket = socket.socket()
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.socket.settimeout(SOON)
            wire.socket.connect(("127.0.0.1", port))
            wire._stream = wire.socket.makefile("rb")
            found.append(stack.enter_context(closing(wire)))
            wire.post(LARGE)
        yield found


def half(wire: Wire) -> None:
    wire.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10")


def calls(proxy: RunningProxy) -> float:
    return proxy.metrics().get(("calls_total", "runFilters", "ok"), 0)


def test_the_end_waits_neither_for_readers_nor_for_senders(proxy: RunningProxy) -> None:
    with narrow(proxy.port), wires(proxy.port, 2) as (sender, _):
        half(sender)
        eventually(lambda: calls(proxy) == 1)
        proxy.process.send_signal(signal.SIGTERM)
        assert proxy.process.wait(SOON) == 0
        proxy.kill()


def test_an_answer_that_is_read_at_the_end_comes_whole(proxy: RunningProxy) -> None:
    with narrow(proxy.port) as (reader,):
        eventually(lambda: calls(proxy) == 1)
        proxy.process.send_signal(signal.SIGTERM)
        assert reader.receive().value["result"] == MANY
        assert reader.closed()
        assert proxy.process.wait(SOON) == 0
        proxy.kill()


def test_answers_that_are_not_read_delay_no_others(proxy: RunningProxy) -> None:
    with narrow(proxy.port, MOST), wires(proxy.port, 1) as (newcomer,):
        newcomer.socket.settimeout(SOON)
        assert newcomer.call().status == 200


def test_a_caller_that_rests_keeps_its_connection_while_others_crowd(proxy: RunningProxy) -> None:
    with ExitStack() as stack:
        (caller,) = stack.enter_context(wires(proxy.port, 1))
        assert caller.call().status == 200
        for _ in range(3):
            for wire in stack.enter_context(wires(proxy.port, 3 * MOST)):
                half(wire)
            with wires(proxy.port, 1) as (newcomer,):
                newcomer.socket.settimeout(SOON)
                answer = newcomer.call("Connection: close")
                assert answer.status == 200, "all that came before it had to make room"
        assert caller.call().status == 200


def test_who_does_not_read_gets_no_further_answers(proxy: RunningProxy) -> None:
    with narrow(proxy.port) as (reader,):
        for _ in range(50):
            reader.post(BODY)
        eventually(lambda: calls(proxy) > 0)
        for _ in range(20):
            assert proxy.filters(["Keep"], ["h1"])["result"] == ["h1"]
        assert calls(proxy) == 1 + 20
        assert reader.receive().value["result"] == MANY
        for _ in range(50):
            assert reader.receive().value["result"] == ["h1", "h2"]


@pytest.mark.timing
def test_a_request_that_begins_after_a_long_rest_has_its_whole_time(tmp_path: Path) -> None:
    config = f"[server]\nrequest_seconds = 2\nidle_seconds = {LONG}\n"
    with serving(tmp_path, config=config, units=PLUGINS) as proxy, wires(proxy.port, 1) as (wire,):
        assert wire.call().status == 200
        wire.socket.settimeout(2.5)
        with pytest.raises(TimeoutError):
            wire.socket.recv(1)
        wire.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\n")
        wire.socket.settimeout(0.8)  # looks for slow clients are half a second apart
        with pytest.raises(TimeoutError):
            wire.socket.recv(1)
        wire.send(b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY))
        wire.socket.settimeout(SOON)
        assert wire.socket.recv(4096).startswith(b"HTTP/1.1 200 ")
