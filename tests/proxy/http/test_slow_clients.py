"""Clients that are allowed to call and are slow at it: they hold up neither other clients nor the end."""

import signal
import socket
import xmlrpc.client
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..running import RunningProxy, eventually, running, write_plugins
from .test_http import BODY, PLUGINS, Wire

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
    with running(write_plugins(tmp_path / "plugins", units=PLUGINS), config=CONFIG) as started:
        yield started


def narrow(port: int) -> Wire:
    """A client whose machine takes little of an answer before it is read."""
    wire = Wire.__new__(Wire)
    wire.socket = socket.socket()
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.socket.settimeout(SOON)
    wire.socket.connect(("127.0.0.1", port))
    wire._stream = wire.socket.makefile("rb")
    return wire


def half(wire: Wire) -> None:
    wire.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10")


def calls(proxy: RunningProxy) -> float:
    return proxy.metrics().get(("calls_total", "runFilters", "ok"), 0)


def test_the_end_waits_neither_for_readers_nor_for_senders(proxy: RunningProxy) -> None:
    reader, sender, silent = narrow(proxy.port), Wire(proxy.port), Wire(proxy.port)
    reader.post(LARGE)
    half(sender)
    eventually(lambda: calls(proxy) == 1)
    proxy.process.send_signal(signal.SIGTERM)
    assert proxy.process.wait(SOON) == 0
    proxy.kill()
    for wire in (reader, sender, silent):
        wire.close()


def test_an_answer_that_is_read_at_the_end_comes_whole(proxy: RunningProxy) -> None:
    reader = narrow(proxy.port)
    reader.post(LARGE)
    eventually(lambda: calls(proxy) == 1)
    proxy.process.send_signal(signal.SIGTERM)
    assert reader.receive().value["result"] == MANY
    assert reader.closed()
    assert proxy.process.wait(SOON) == 0
    proxy.kill()


def test_answers_that_are_not_read_delay_no_others(proxy: RunningProxy) -> None:
    slow = [narrow(proxy.port) for _ in range(MOST)]
    for wire in slow:
        wire.post(LARGE)
    newcomer = Wire(proxy.port)
    newcomer.socket.settimeout(SOON)
    newcomer.post(BODY)
    assert newcomer.receive().status == 200
    for wire in [newcomer, *slow]:
        wire.close()


def test_a_caller_that_rests_keeps_its_connection_while_others_crowd(proxy: RunningProxy) -> None:
    caller = Wire(proxy.port)
    caller.post(BODY)
    assert caller.receive().status == 200
    crowd: list[Wire] = []
    for _ in range(3):
        crowd += [Wire(proxy.port) for _ in range(3 * MOST)]
        for wire in crowd[-3 * MOST :]:
            half(wire)
        newcomer = Wire(proxy.port)
        newcomer.socket.settimeout(SOON)
        newcomer.post(BODY, "Connection: close")
        assert newcomer.receive().status == 200, "all that came before it had to make room"
        newcomer.close()
    caller.post(BODY)
    assert caller.receive().status == 200
    for wire in [caller, *crowd]:
        wire.close()


def test_who_does_not_read_gets_no_further_answers(proxy: RunningProxy) -> None:
    reader = narrow(proxy.port)
    reader.post(LARGE)
    for _ in range(50):
        reader.post(BODY)
    eventually(lambda: calls(proxy) > 0)
    for _ in range(20):
        assert proxy.filters(["Keep"], ["h1"])["result"] == ["h1"]
    assert calls(proxy) == 1 + 20
    assert reader.receive().value["result"] == MANY
    for _ in range(50):
        assert reader.receive().value["result"] == ["h1", "h2"]
    reader.close()


@pytest.mark.timing
def test_a_request_that_begins_after_a_long_rest_has_its_whole_time(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", units=PLUGINS)
    config = f"[server]\nrequest_seconds = 2\nidle_seconds = {LONG}\n"
    with running(folder, config=config) as proxy:
        wire = Wire(proxy.port)
        wire.post(BODY)
        assert wire.receive().status == 200
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
        wire.close()
