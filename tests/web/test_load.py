"""What many do at once, or one who means harm: log-ins, streams, and readers that take nothing in."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import msgspec
import psutil
import pytest
from starlette.requests import Request

from ovirt_placement.engine.users import Rights
from ovirt_placement_web import api
from ovirt_placement_web.bounds import Bounds, WebMetrics
from ovirt_placement_web.sessions import Sessions
from ovirt_placement_web.state.sources import LiveState
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
    monkeypatch.setattr(api, "_PATIENCE_SECONDS", 0.05)
    sessions, limits = Sessions(60.0), Bounds(WebMetrics(), streams=5, streams_each=5)
    cookie, _ = sessions.begin(Rights("id", "name", administrator=True), "token")
    site: Any = SimpleNamespace(
        sessions=sessions,
        bounds=limits,
        live=_live_state(),
        cookie_of=lambda request: request.cookies.get(COOKIE),
        session=lambda request, use: sessions.find(cookie, use=use),
    )
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message["type"])
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/events",
        "query_string": b"",
        "site": site,
        "headers": [(b"cookie", f"{COOKIE}={cookie}".encode())],
    }

    async def stream() -> None:
        await (await api.events(Request(scope)))(scope, receive, send)

    asyncio.run(stream())
    assert sent == ["http.response.start", "http.response.body"]
    assert limits.streams._free == 5


def _live_state() -> LiveState:
    from ovirt_placement.config import load

    return LiveState(load(None, {"OVIRT_URL": "http://127.0.0.1:9/ovirt-engine/api"}))


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
