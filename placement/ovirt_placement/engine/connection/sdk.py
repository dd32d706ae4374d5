"""The SDK's connection, with limits on what it waits for, and with changes that are sent only once."""

from __future__ import annotations

import math
import select
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

import ovirtsdk4
import pycurl

from ovirt_placement.engine.connection import conditions
from ovirt_placement.engine.connection.transfers import Limits, Transfer
from ovirt_placement.engine.connection.unanswered import Cause, Unanswered, of_curl

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


class SignOn(Protocol):
    """Where tokens come from, and go to."""

    def log_in(self) -> str:
        """Give a token that is new to the session."""

    def log_out(self, token: str) -> None:
        """End its session."""


class SdkConnection(ovirtsdk4.Connection):  # type: ignore[misc] # the SDK has no types
    """As its base, but within limits of time and size, see `send` and `wait`; it logs in and out by `sso`."""

    #: What the base waits with, and the token that it sends.
    _multi: Any
    _sso_token: str

    def __init__(
        self, *, sso: SignOn, token: str | None, ended: Callable[[], bool], limits: Limits, **settings: Any
    ) -> None:
        """Log in, which raises as `SingleSignOn.log_in`, unless there is a token; `ended` breaks off all."""
        token = token or sso.log_in()
        try:
            super().__init__(token=token, **settings)
        except pycurl.error as error:  # a handle is not to be had, which has no code of its own
            raise MemoryError(str(error)) from None
        self._multi = Sockets(self._multi)
        self._sso = sso
        self._ended = ended
        self._limits = limits
        self._transfer = Transfer(ended, limits)

    @property
    def token(self) -> str:
        """What it is logged in with."""
        return self._sso_token

    def send(self, request: Any) -> Any:
        """Send a request, unless what `sending.checked` asks for says no.

        What changes something goes over a connection of its own: when a kept connection breaks before the
        answer, curl sends the request again by itself, though the engine may have carried it out, and a
        migration or a policy's unit would be asked for twice.
        """
        context = super().send(request)
        curl, body, headers, _ = context
        self._transfer = Transfer(self._ended, self._limits)
        self._transfer.take_over(curl, body, headers)
        if request.method != "GET":
            curl.setopt(pycurl.FRESH_CONNECT, 1)
        if (longest := conditions.longest()) is not None:
            curl.setopt(pycurl.TIMEOUT_MS, round(1000 * min(longest, self._timeout)))
        conditions.check()
        return context

    def wait(self, context: Any, failed_auth: bool = False) -> Any:
        """Wait for the answer; where the token is not valid any more, log in and send once more.

        Raises `Unanswered`, and what the log-in raises.
        """
        answer = self._answer(context)
        if answer.code != 401 or failed_auth:
            return answer
        self._sso_token = self._sso.log_in()
        return self._answer(self.send(context[3]))

    def close(self, logout: bool = True) -> None:
        """Release it, then log out unless not asked to, which raises as `SingleSignOn.log_out`."""
        super().close(logout=False)
        if logout:
            self._sso.log_out(self._sso_token)

    def _answer(self, context: Any) -> Any:
        try:
            # As if a log-in had failed already: the base shall not try one.
            return super().wait(context, failed_auth=True)
        except ovirtsdk4.Error as error:
            if self._transfer.interrupted:
                raise Unanswered(Cause.INTERRUPTED, self._transfer.interrupted) from None
            if isinstance(error.__context__, pycurl.error):
                raise of_curl(error.__context__) from None
            raise
        except UnicodeDecodeError:
            raise Unanswered(Cause.NO_ENGINE, "the headers of an answer are not ASCII") from None
