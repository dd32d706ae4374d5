"""What lies between a client and the engine: each request is passed on, or meets a distortion."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable
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
            distorted = self._take(environ["REQUEST_METHOD"], path)
            if distorted is None:
                return application(environ, start_response)
            return distorted(application, environ, start_response)

        return answer

    def _take(self, method: str, path: str) -> Distorted | None:
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
