"""What the SDK waits for the engine with: sockets with any number, and errors that keep what curl says."""

from __future__ import annotations

import math
import select
import time
from typing import Any, Final

import pycurl

#: So soon a request learns that nobody waits for its answer any more.
_LONGEST_SECONDS: Final = 0.2
#: Where curl names neither a socket nor a time, as while an older one resolves a name.
_PAUSE_SECONDS: Final = 0.01
_EVENTS: Final = {
    pycurl.POLL_IN: select.POLLIN,
    pycurl.POLL_OUT: select.POLLOUT,
    pycurl.POLL_INOUT: select.POLLIN | select.POLLOUT,
}


class Sockets:
    """As the `pycurl.CurlMulti` that it stands for, with other ways to wait, and with another `info_read`.

    curl's own `select` sees no descriptor from 1,024 on. So curl says here what it waits for, and when it
    wants to be called at the latest: https://curl.se/libcurl/c/curl_multi_socket_action.html.
    """

    def __init__(self, multi: Any) -> None:
        self._multi = multi
        self._awaited = _Awaited()
        multi.setopt(pycurl.M_SOCKETFUNCTION, self._awaited.note_socket)
        multi.setopt(pycurl.M_TIMERFUNCTION, self._awaited.note_time)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._multi, name)

    def perform(self) -> tuple[int, int]:
        """Do what can be done now, on all sockets: a request learns that it is not awaited any more."""
        found = self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        for descriptor in tuple(self._awaited.events):
            if descriptor in self._awaited.events:  # the one before may have ended it
                found = self._multi.socket_action(descriptor, 0)
        return int(found[0]), int(found[1])

    def select(self, seconds: float) -> int:
        """Wait until a socket is ready, or curl wants to be called; at most this long, and never for long."""
        poll = select.poll()
        for descriptor, events in self._awaited.events.items():
            poll.register(descriptor, events)
        return len(poll.poll(math.ceil(1000 * self._awaited.limit(min(seconds, _LONGEST_SECONDS)))))

    def info_read(self) -> Any:
        """What has ended; raises `pycurl.error` for a request that failed, which the SDK would print."""
        found = self._multi.info_read()
        for _curl, number, text in found[2]:
            raise pycurl.error(number, text)
        return found


class _Awaited:
    """What curl waits for: events by descriptor, and the time of the next call, by `time.monotonic`."""

    def __init__(self) -> None:
        self.events: dict[int, int] = {}
        self._due: float | None = None

    def note_socket(self, event: int, descriptor: int, _multi: Any, _data: Any) -> None:
        if event in _EVENTS:
            self.events[descriptor] = _EVENTS[event]
        else:
            self.events.pop(descriptor, None)

    def note_time(self, milliseconds: int) -> None:
        self._due = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000

    def limit(self, seconds: float) -> float:
        """How much of this time may be waited."""
        if self._due is None:
            return seconds if self.events else min(_PAUSE_SECONDS, seconds)
        return max(0.0, min(seconds, self._due - time.monotonic()))
