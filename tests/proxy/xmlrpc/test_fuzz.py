"""Mutated requests neither crash nor hang the proxy, show nobody a traceback, and leave its memory flat."""

import os
import random
import socket
import xmlrpc.client
from collections.abc import Iterator

import psutil
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ..running import RunningProxy, serving, units

#: Requests in one run; FUZZ_REQUESTS raises it for a longer one.
REQUESTS = int(os.environ.get("FUZZ_REQUESTS", "8000"))

#: Requests that each example sends, so that most of the time goes into the proxy.
BATCH = 100

MOST_GROWTH = 24 << 20

CALLS = [
    xmlrpc.client.dumps((["Keep"], ["h1", "h2"], "vm", {"k": "v"}), "runFilters"),
    xmlrpc.client.dumps(([["Weigh", 2]], ["h1", "h2"], "vm", {}), "runCostFunctions"),
    xmlrpc.client.dumps(("Move", ["h1", "h2"], {}), "runLoadBalancing"),
    xmlrpc.client.dumps((), "discover"),
]

TOKENS = [
    *(b"<value>", b"</value>", b"<array><data>", b"<struct>", b"<int>", b"<string>", b"</param>"),
    *(b"<ex:nil/>", b"<!DOCTYPE a [<!ENTITY x 'y'>]>", b"&x;", b"&lt;", b"<![CDATA[", b"]]>", b"<!--"),
    *(b"<?pi?>", b"\x00", b"\r\n\r\n", b"\r\n", b"Content-Length: 3\r\n", b"HTTP/1.0", b"0\r\n\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Content-Encoding: gzip\r\n"),
    *(b"99999999999999999999", b"-1", b"\xff\xfe"),
]


def request(chance: random.Random) -> bytes:
    """A request of the engine's, damaged in a few places; most often still with the right length."""
    body = bytearray(chance.choice(CALLS).encode())
    if chance.random() < 0.8:
        damage(body, chance)
    connection = "close" if chance.random() < 0.9 else "keep-alive"
    head = bytearray(
        f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/xml\r\n"
        f"Content-Length: {len(body)}\r\nConnection: {connection}\r\n\r\n".encode()
    )
    if chance.random() < 0.2:
        damage(head, chance)
    return bytes(head + body)


def damage(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(data) + 1)
        end = min(len(data), start + chance.choice([0, 0, 1, 1, 5, 40]))
        choices = [chance.choice(TOKENS), chance.randbytes(chance.randint(0, 6)), bytes(data[start:end]) * 3]
        data[start:end] = chance.choice(choices)


def exchange(port: int, data: bytes) -> bytes:
    """Send the request, say that there is no more, and read until the proxy ends the connection."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                received += part
        except ConnectionError:
            pass  # it was refused before it was sent in full
    return received


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    kept = units(Keep="return hosts")
    weighed = units("score", Weigh="return [(host, 1) for host in hosts]")
    moved = units("balance", Move="return '11111111-2222-3333-4444-555555555555', hosts")
    config = "[log]\nlevel = 'error'\n"
    with serving(tmp_path_factory.mktemp("fuzz"), config=config, units=kept + weighed + moved) as started:
        yield started


@pytest.mark.system
def test_mutated_requests(proxy: RunningProxy) -> None:
    process = psutil.Process(proxy.process.pid)
    sizes: list[int] = []

    @settings(
        max_examples=max(2, REQUESTS // BATCH),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**64 - 1))
    def attack(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(BATCH):
            answered = exchange(proxy.port, request(chance))
            assert b"Traceback" not in answered
            assert b'File "' not in answered
            assert answered == b"" or answered.startswith(b"HTTP/1.1 ")
        sizes.append(process.memory_info().rss)

    attack()
    assert proxy.filters(["Keep"], ["h1"])["result"] == ["h1"]
    assert "error of the proxy's own" not in proxy.log
    assert max(sizes[len(sizes) // 2 :]) - sizes[len(sizes) // 4] < MOST_GROWTH
