"""What goes wrong between client and engine on demand: errors, slow and lost answers."""

from __future__ import annotations

import re
import threading
from typing import Literal

import msgspec

#: Where an answer gets lost: with the request, which is then never carried out, or on its way back.
Drop = Literal["request", "answer"]


class Disturbance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens to requests that fit, in place of or on top of their answer."""

    #: Only this method; None fits all.
    method: str | None = None
    #: A regular expression that must occur in the path and query.
    path: str = ""
    #: Answer with this status and the container's page, and carry nothing out.
    status: int | None = None
    #: Wait this many real seconds first, or until the disturbances are cleared.
    delay_seconds: float = 0.0
    #: Hang up before or after carrying the request out.
    drop: Drop | None = None
    #: For how many requests; None for all to come.
    times: int | None = 1

    def fits(self, method: str, path: str) -> bool:
        return self.method in (None, method) and re.search(self.path, path) is not None


class Disturbances:
    """The disturbances to come; the first one that fits a request is the one it meets."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Disturbance] = []
        self._cleared = threading.Event()

    def add(self, disturbance: Disturbance) -> None:
        re.compile(disturbance.path)
        with self._lock:
            self._waiting.append(disturbance)

    def clear(self) -> None:
        """Have none any more: what was delayed goes on at once."""
        with self._lock:
            self._waiting.clear()
            cleared, self._cleared = self._cleared, threading.Event()
        cleared.set()

    def delay(self, disturbance: Disturbance) -> None:
        """Wait as long as this one says."""
        with self._lock:
            cleared = self._cleared
        cleared.wait(disturbance.delay_seconds)

    @property
    def waiting(self) -> list[Disturbance]:
        """Those that have not been used up."""
        with self._lock:
            return list(self._waiting)

    def take(self, method: str, path: str) -> Disturbance | None:
        """Give what this request meets, if anything, and use it up by one."""
        with self._lock:
            for index, disturbance in enumerate(self._waiting):
                if disturbance.fits(method, path):
                    self._count_down(index, disturbance)
                    return disturbance
        return None

    def _count_down(self, index: int, disturbance: Disturbance) -> None:
        if disturbance.times is None:
            return
        if disturbance.times > 1:
            self._waiting[index] = msgspec.structs.replace(disturbance, times=disturbance.times - 1)
        else:
            del self._waiting[index]
