"""The SDK's connection, with limits on what it waits for, and with changes that are sent only once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import ovirtsdk4
import pycurl

from ovirt_placement.engine.connection import sending, waiting
from ovirt_placement.engine.connection.sockets import Sockets
from ovirt_placement.engine.connection.transfers import Limits, Transfer
from ovirt_placement.engine.connection.unanswered import Cause, Unanswered, of_curl


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

    def __init__(self, *, sso: SignOn, ended: Callable[[], bool], limits: Limits, **settings: Any) -> None:
        """Log in, which raises as `SingleSignOn.log_in`; `ended` breaks off what is under way."""
        token = sso.log_in()
        try:
            super().__init__(token=token, **settings)
        except pycurl.error as error:  # a handle is not to be had, which has no code of its own
            raise MemoryError(str(error)) from None
        self._multi = Sockets(self._multi)
        self._sso = sso
        self._ended = ended
        self._limits = limits
        self._transfer = Transfer(ended, limits)

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
        if (longest := waiting.longest()) is not None:
            curl.setopt(pycurl.TIMEOUT_MS, round(1000 * min(longest, self._timeout)))
        sending.check()
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
