"""A small web server that answers like an engine, from a recording: for what needs no simulated engine."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.exchanges import OF_ANSWERS, Limits
from tests.paths import RECORDING

API = "/ovirt-engine/api"
PASSWORD = "password"
#: How an answer begins that is compressed.
GZIP = b"\x1f\x8b"
#: What a recording does not hold, this engine does not have.
NOT_THERE = (404, b"<fault><detail>Not found</detail><reason>Operation Failed</reason></fault>")

#: Answers a path (below the API) with a status and a body; None leaves it to the recording.
Answer = Callable[[str], tuple[int, bytes] | None]


class EngineServer(ThreadingHTTPServer):
    """Serves a recording; `answer` may speak first, `tokens` are those that are valid."""

    daemon_threads = True

    def __init__(self, recording: Path = RECORDING, answer: Answer | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.recording = recording
        self.answer = answer or (lambda path: None)
        self.requests: list[str] = []
        self.tokens: set[str] = set()
        self.logins = 0
        self.password = PASSWORD
        #: What is done before a log-out is answered.
        self.log_out: Callable[[], object] = lambda: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{API}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients that break off a connection are what some tests are about."""


@contextmanager
def serving(server: EngineServer) -> Iterator[EngineServer]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def connected(
    server: EngineServer | str, *, password: str = PASSWORD, limits: Limits = OF_ANSWERS, **settings: Any
) -> EngineConnection:
    """A connection to what serves there, as the administrator that it knows if nothing else is said."""
    url = server if isinstance(server, str) else server.url
    asked = EngineSettings(**{"url": url, "username": "admin@internal", **settings})
    return EngineConnection(asked, {"OVIRT_PASSWORD": password}, limits)


@contextmanager
def answering(answer: Answer) -> Iterator[tuple[EngineServer, EngineConnection]]:
    """One that answers so, else from the recording, and a connection to it."""
    with serving(EngineServer(answer=answer)) as server, connected(server) as connection:
        yield server, connection


class _Handler(BaseHTTPRequestHandler):
    server: EngineServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Keep the test's output clean."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        path = urlsplit(self.path).path
        if path.endswith("/sso/oauth/token"):
            self._log_in(parse_qs(body.decode()))
        elif path.endswith("/sso-logout"):
            self.server.log_out()
            self._send(200, b"{}", "application/json")
        else:
            self._answer(self.path.removeprefix(API))

    def do_GET(self) -> None:
        if self.headers["Authorization"].removeprefix("Bearer ") not in self.server.tokens:
            self._send(401, b"<html>Unauthorized</html>", "text/html;charset=UTF-8")
        else:
            self._answer(self.path.removeprefix(API))

    def _log_in(self, form: dict[str, list[str]]) -> None:
        self.server.logins += 1
        if form["password"] != [self.server.password]:
            self._send(
                400, b'{"error_code":"access_denied","error":"Cannot authenticate user"}', "application/json"
            )
            return
        token = f"token{self.server.logins}"
        self.server.tokens.add(token)
        self._send(200, b'{"access_token":"%s","exp":"1"}' % token.encode(), "application/json")

    def _answer(self, path: str) -> None:
        self.server.requests.append(path)
        answer = self.server.answer(path) or self._recorded(urlsplit(path).path)
        self._send(*answer, "text/html" if _is_page(answer[1]) else "application/xml")

    def _recorded(self, path: str) -> tuple[int, bytes]:
        file = self.server.recording / (path.strip("/").replace("/", "_") + ".xml")
        return (200, file.read_bytes()) if file.exists() else NOT_THERE

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if body.startswith(GZIP):
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _is_page(body: bytes) -> bool:
    return body.startswith(b"<html>") or not body.startswith((b"<", GZIP))
