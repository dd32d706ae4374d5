"""What many do at once, or one who means harm: log-ins, streams, and readers that take nothing in."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import msgspec
import psutil
import pytest

from ovirt_placement.engine.reading.rights import Rights
from ovirt_placement_web import events
from ovirt_placement_web.keeper import Keeper
from ovirt_placement_web.sessions import Sessions, Streams, Throttle
from ovirt_simulator.http.sso import LoginError
from tests.web.conftest import STATE
from tests.web.running import COOKIE, PATIENCE_SECONDS, ROOT, Page, paged

STREAMS = 500
MIB = 2**20


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    lines = f'streams = {STREAMS}\nstreams_per_session = {STREAMS}\ntrusted_proxies = ["127.0.0.1"]'
    with paged(tmp_path, msgspec.structs.replace(STATE, affinity_groups=()), web=lines) as found:
        yield found


@pytest.mark.system
def test_of_1000_wrong_log_ins_at_once_the_engine_sees_five(page: Page) -> None:
    """From one address with a name each, and for one name from an address each; others log in meanwhile."""
    asked: Counter[str] = Counter()
    log_in = page.server.tokens.log_in

    def slowly(name: str, password: str) -> str:
        if password == "wrong":
            asked[name.partition("-")[0]] += 1
            time.sleep(0.05)
            raise LoginError("access_denied", "no")
        return log_in(name, password)

    page.server.tokens.log_in = slowly  # type: ignore[method-assign]
    before = _resident(page)
    with ThreadPoolExecutor(40) as many:
        one_address = many.map(
            lambda number: page.log_in(f"spray-{number}@internal", "wrong", X_Forwarded_For="192.0.2.1"),
            range(500),
        )
        statuses = Counter(answer.status for answer in one_address)
        one_name = many.map(
            lambda number: page.log_in(
                "victim-@internal", "wrong", X_Forwarded_For=f"198.51.{number % 2}.{number // 2}"
            ),
            range(500),
        )
        statuses.update(answer.status for answer in one_name)
    assert asked == {"spray": 5, "victim": 5}
    assert statuses == {401: 10, 429: 990}
    assert _resident(page) - before < 30 * MIB
    assert page.log_in(X_Forwarded_For="203.0.113.9").status == 303


def test_tries_that_are_under_way_count_and_memory_is_bounded() -> None:
    throttle = Throttle(lambda: 0.0)
    assert [throttle.begin("a", "1") for _ in range(5)] == [0.0] * 5
    assert throttle.begin("a", "2") > 0
    assert throttle.begin("b", "1") > 0
    for _ in range(5):
        throttle.end("a", "1")
    assert throttle.begin("a", "1") == 0.0
    throttle.end("a", "1")
    for number in range(20_500):
        throttle.failed(f"name {number}" * 30, str(number))
    assert len(throttle._failures) == 20_000
    assert not throttle._under_way
    assert max(len(text) for _, text in throttle._failures) <= 256


@pytest.mark.system
def test_500_streams_are_served_and_then_others(page: Page) -> None:
    cookie = page.session()
    with ExitStack() as all_open:
        streams = [all_open.enter_context(_stream(page, cookie)) for _ in range(STREAMS)]
        assert all(stream.recv(12) == b"HTTP/1.1 200" for stream in streams)
        too_many = page.ask("/events", cookie=cookie)
        assert (too_many.status, too_many.headers["retry-after"]) == (429, "30")
        number = _number(page, cookie)
        page.engine.vms.migrate("b", host_id="h2")
        page.engine.advance(1)
        page.until(lambda: _number(page, cookie) > number)
        newer = f'"number":{_number(page, cookie)}'.encode()
        assert all(_hears(stream, newer) for stream in streams)
    page.until(lambda: _opens(page, cookie))


@pytest.mark.system
def test_readers_that_take_nothing_in_cost_others_nothing(page: Page) -> None:
    cookie = page.session()
    page.ask("/map/c1/table", cookie=cookie)
    before = _resident(page)
    with ExitStack() as all_open:
        for _ in range(200):
            all_open.enter_context(_stream(page, cookie, buffer=1024))
        for at in range(40):
            page.engine.vms.migrate("b", host_id=("h2", "h1")[at % 2])
            page.engine.advance(600)
            assert page.ask("/", cookie=cookie).status == 200
        assert _resident(page) - before < 40 * MIB


def test_a_stream_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it sends waits for its reader, one event and no more, until its patience is over."""
    monkeypatch.setattr(events, "_PATIENCE_SECONDS", 0.05)
    sessions, streams = Sessions(60.0), Streams(5, 5)
    cookie, _ = sessions.begin(Rights("id", "name", administrator=True), "token")
    site: Any = SimpleNamespace(
        sessions=sessions,
        streams=streams,
        keeper=_keeper(),
        cookie_of=lambda request: request.cookies.get(COOKIE),
    )
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message["type"])
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/events",
        "query_string": b"",
        "headers": [(b"cookie", f"{COOKIE}={cookie}".encode())],
    }
    asyncio.run(events.EventStream(site)(scope, receive, send))
    assert sent == ["http.response.start", "http.response.body"]
    assert streams.open == 0


def _keeper() -> Keeper:
    from ovirt_placement.config import load

    return Keeper(load(None, {"OVIRT_URL": "http://127.0.0.1:9/ovirt-engine/api"}))


def _stream(page: Page, cookie: str, *, buffer: int = 0) -> socket.socket:
    at = urlsplit(page.url)
    stream = socket.socket()
    if buffer:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    stream.settimeout(PATIENCE_SECONDS)
    stream.connect((at.hostname, at.port))
    stream.sendall(
        f"GET {ROOT}/events HTTP/1.1\r\nHost: {at.netloc}\r\nCookie: {COOKIE}={cookie}\r\n\r\n".encode()
    )
    return stream


def _hears(stream: socket.socket, what: bytes) -> bool:
    heard = b""
    while what not in heard:
        heard += stream.recv(4096)
    return True


def _opens(page: Page, cookie: str) -> bool:
    with _stream(page, cookie) as stream:
        return stream.recv(12) == b"HTTP/1.1 200"


def _number(page: Page, cookie: str) -> int:
    """Of the state that is known, as each page says it."""
    return int(page.ask("/", cookie=cookie).text.partition('data-number="')[2].partition('"')[0])


def _resident(page: Page) -> int:
    return int(psutil.Process(page.process.pid).memory_info().rss)
