"""What lies between a client and the engine, and what may come in place of an answer."""

import errno
import functools
import re
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from werkzeug import Response

from ovirt_simulator.http.server import WebFace

_API = "/ovirt-engine/api"
#: How long the enforcer waits for an answer, and an answer that takes longer.
PATIENCE_SECONDS, _LONGER_SECONDS = 1.0, 1.5

#: Asks the engine, which then does what was asked.
Ask = Callable[[], Response]
#: Answers in place of the engine, and asks it or not.
Distorted = Callable[[Ask], Response]


class Wire:
    """Distorts requests that fit, each distortion after this many of them and this many times."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[str, re.Pattern[str], Distorted]] = []
        self._seen = Counter[str]()

    def distort(self, method: str, path: str, answer: Distorted, *, skip: int = 0, times: int = 1) -> None:
        """Let requests of the API meet this; `path` is an expression that fits what follows the API's own."""
        met = (*[_true] * skip, *[answer] * times)
        with self._lock:
            self._waiting += [(method, re.compile(path), one) for one in met]

    @property
    def waiting(self) -> bool:
        """Whether something has not struck yet."""
        with self._lock:
            return bool(self._waiting)

    def seen(self, path: str) -> int:
        """How many requests have come for this."""
        with self._lock:
            return self._seen[path]

    def around(self, application: WebFace) -> WebFace:
        def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            distorted = self._take_distorted(environ["REQUEST_METHOD"], environ["PATH_INFO"])
            if distorted is None:
                return application(environ, start_response)
            found = distorted(lambda: Response.from_app(application, environ, buffered=True))
            return found(environ, start_response)

        return answer

    def _take_distorted(self, method: str, whole_path: str) -> Distorted | None:
        path = whole_path.removeprefix(_API)
        with self._lock:
            self._seen[path] += 1
            for at, (struck, pattern, _) in enumerate(self._waiting):
                if struck == method and pattern.fullmatch(path):
                    return self._waiting.pop(at)[2]
        return None


def page(status: int) -> Distorted:
    """A web server's page; the engine learns of nothing."""
    html = "<html><body><h1>It works, but not here</h1></body></html>"
    return lambda _: Response(html, status, mimetype="text/html")


def nothing(_: Ask) -> Response:
    """The connection ends; the engine learns of nothing."""
    raise _hung_up()


def silence(_: Ask) -> Response:
    """Nothing comes for longer than anybody waits."""
    threading.Event().wait(_LONGER_SECONDS)
    raise _hung_up()


def after_acting(answer: Distorted) -> Distorted:
    """This in place of the answer, though the engine has done what was asked."""

    def answer_late(ask: Ask) -> Response:
        ask()
        return answer(ask)

    return answer_late


def with_act(act: Callable[[], object], *, first: bool) -> Distorted:
    """The true answer, and something else happens before or after the engine has done what was asked."""

    def answer(ask: Ask) -> Response:
        if first:
            act()
        found = ask()
        if not first:
            act()
        return found

    return answer


def slow(ask: Ask) -> Response:
    threading.Event().wait(0.1)
    return ask()


def empty(ask: Ask) -> Response:
    """A list of nothing, as the engine itself would write it."""
    found = re.search(rb"<([a-z_]+)", ask().data)
    assert found is not None
    return _xml(b"<" + found[1] + b"/>")


def cut(ask: Ask) -> Response:
    """Half of the answer, and the connection ends."""

    def body() -> Iterator[bytes]:
        yield whole.data[: len(whole.data) // 2]
        raise _hung_up()

    whole = ask()
    return Response(body(), whole.status, whole.headers)


def half(ask: Ask) -> Response:
    """Half of the answer, as if that were all."""
    whole = ask().data
    return _xml(whole[: len(whole) // 2])


def bomb(_: Ask) -> Response:
    """Half a megabyte that unpacks to half a gigabyte and more."""
    return _xml(_packed_zeros(), {"Content-Encoding": "gzip"})


def redirect(_: Ask) -> Response:
    return Response(status=302, headers={"Location": "http://127.0.0.1:1/"})


@functools.cache
def _packed_zeros() -> bytes:
    packing = zlib.compressobj(1, wbits=31)
    return b"".join(packing.compress(bytes(2**20)) for _ in range(600)) + packing.flush()


def _true(ask: Ask) -> Response:
    return ask()


def _xml(body: bytes, headers: dict[str, str] | None = None) -> Response:
    return Response(body, headers=headers, mimetype="application/xml")


def _hung_up() -> OSError:
    """The error on which the server closes the connection."""
    return ConnectionResetError(errno.ECONNRESET, "distorted")
