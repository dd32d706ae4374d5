"""What lies between a client and the engine, and what may come in place of an answer."""

from __future__ import annotations

import errno
import functools
import re
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]
#: Answers in place of the application that it is given.
Distorted = Callable[[Application, Environ, StartResponse], Iterable[bytes]]

API = "/ovirt-engine/api"


@dataclass
class _Waiting:
    method: str
    path: re.Pattern[str]
    answer: Distorted
    skip: int
    times: int


class Wire:
    """Distorts requests that fit, each distortion after this many of them and this many times."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._seen = Counter[str]()

    def distort(self, method: str, path: str, answer: Distorted, *, skip: int = 0, times: int = 1) -> None:
        """Let requests of the API meet this; `path` is an expression that fits what follows the API's own."""
        with self._lock:
            self._waiting.append(_Waiting(method, re.compile(path), answer, skip, times))

    @property
    def waiting(self) -> bool:
        """Whether something has not struck yet."""
        with self._lock:
            return bool(self._waiting)

    def seen(self, path: str) -> int:
        """How many requests have come for this."""
        with self._lock:
            return self._seen[path]

    def around(self, application: Application) -> Application:
        def answer(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
            path = str(environ["PATH_INFO"]).removeprefix(API)
            distorted = self._take_distorted(environ["REQUEST_METHOD"], path)
            if distorted is None:
                return application(environ, start_response)
            return distorted(application, environ, start_response)

        return answer

    def _take_distorted(self, method: str, path: str) -> Distorted | None:
        with self._lock:
            self._seen[path] += 1
            for one in self._waiting:
                if one.method == method and one.path.fullmatch(path):
                    return self._count(one)
        return None

    def _count(self, one: _Waiting) -> Distorted | None:
        if one.skip:
            one.skip -= 1
            return None
        one.times -= 1
        if not one.times:
            self._waiting.remove(one)
        return one.answer


#: Longer than the enforcer waits for an answer.
PATIENCE_SECONDS = 1.0
_LONGER_SECONDS = 1.5

_HTML = b"<html><body><h1>It works, but not here</h1></body></html>"
_XML = [("Content-Type", "application/xml")]
_STATUS = {401: "401 Unauthorized", 404: "404 Not Found", 500: "500 Internal Server Error"}


def page(status: int) -> Distorted:
    """A web server's page; the engine learns of nothing."""

    def answer(_: Application, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        return _page(status, start_response)

    return answer


def page_after_acting(application: Application, environ: Environ, start: StartResponse) -> Iterable[bytes]:
    """Status 500, though the engine has done what was asked."""
    _answer(application, environ)
    return _page(500, start)


def nothing(application: Application, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """The connection ends; the engine learns of nothing."""
    raise _hung_up()


def nothing_after_acting(application: Application, environ: Environ, _: StartResponse) -> Iterable[bytes]:
    """The connection ends, though the engine has done what was asked."""
    _answer(application, environ)
    raise _hung_up()


def silence(application: Application, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """The engine does what was asked, and says nothing for longer than anybody waits."""
    _answer(application, environ)
    threading.Event().wait(_LONGER_SECONDS)
    raise _hung_up()


def slow(application: Application, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    threading.Event().wait(0.1)
    return application(environ, start_response)


def empty(application: Application, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """A list of nothing, as the engine itself would write it."""
    _, _, body = _answer(application, environ)
    found = re.search(rb"<([a-z_]+)", body)
    assert found is not None
    start_response("200 OK", _XML)
    return [b"<" + found[1] + b"/>"]


def cut(application: Application, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """Half of the answer, and the connection ends."""
    status, headers, body = _answer(application, environ)
    start_response(status, headers)
    return _half(body)


def half(application: Application, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """Half of the answer, as if that were all."""
    _, _, body = _answer(application, environ)
    start_response("200 OK", _XML)
    return [body[: len(body) // 2]]


def bomb(_: Application, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """Half a megabyte that unpacks to half a gigabyte and more."""
    packed = _packed_zeros()
    start_response("200 OK", [*_XML, ("Content-Encoding", "gzip"), ("Content-Length", str(len(packed)))])
    return [packed]


def redirect(_: Application, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    start_response("302 Found", [("Location", "http://127.0.0.1:1/"), ("Content-Length", "0")])
    return []


def with_act(act: Callable[[], object], *, first: bool) -> Distorted:
    """The true answer, and something else happens before or after the engine has done what was asked."""

    def answer(application: Application, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if first:
            act()
        status, headers, body = _answer(application, environ)
        if not first:
            act()
        start_response(status, headers)
        return [body]

    return answer


@functools.cache
def _packed_zeros() -> bytes:
    packing = zlib.compressobj(1, wbits=31)
    return b"".join(packing.compress(bytes(2**20)) for _ in range(600)) + packing.flush()


def _page(status: int, start_response: StartResponse) -> Iterable[bytes]:
    start_response(_STATUS[status], [("Content-Type", "text/html"), ("Content-Length", str(len(_HTML)))])
    return [_HTML]


def _answer(application: Application, environ: Environ) -> tuple[str, list[tuple[str, str]], bytes]:
    """What the engine itself says, after it has done what was asked."""
    reported: list[Any] = []
    body = b"".join(application(environ, lambda status, headers, *_: reported.append((status, headers))))
    status, headers = reported[-1]
    return status, headers, body


def _half(body: bytes) -> Iterator[bytes]:
    yield body[: len(body) // 2]
    raise _hung_up()


def _hung_up() -> OSError:
    """The error on which the server closes the connection."""
    return ConnectionResetError(errno.ECONNRESET, "distorted")
