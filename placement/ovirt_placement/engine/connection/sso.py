"""The SDK's connection, with limits on what it waits for, and with changes that are sent only once."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlencode

import ovirtsdk4
import pycurl

from ovirt_placement.engine.connection import sending, waiting
from ovirt_placement.engine.connection.high_sockets import HighSockets
from ovirt_placement.engine.connection.log_ins import LogIns
from ovirt_placement.engine.connection.password import Password
from ovirt_placement.engine.connection.transfers import OF_LOG_INS, Limits, Transfer

#: A web server answers these for an engine that starts or stops.
AWAY_STATUSES = frozenset({502, 503, 504})
#: The engine forgets a session by itself: nobody waits longer for that.
_LOG_OUT_MILLISECONDS: Final = 500


class NotAnEngine(Exception):
    """What answered is no engine: its log-in is not that of an engine, or its answer breaks HTTP's rules."""


class BrokenOff(ovirtsdk4.Error):  # type: ignore[misc] # the SDK has no types
    """We broke an answer off: it was too large, or nobody waits for it any more."""


class SdkConnection(ovirtsdk4.Connection):  # type: ignore[misc]
    """As its base, but within limits of time and size, and see `send` and `_get_access_token`."""

    #: What the base waits with.
    _multi: Any

    def __init__(
        self,
        *,
        password: Callable[[], Password],
        log_ins: LogIns,
        ended: Callable[[], bool],
        limits: Limits,
        **settings: Any,
    ) -> None:
        """`password` reads it, for each log-in again; `ended` breaks off what is under way."""
        super().__init__(**settings)
        self._multi = HighSockets(self._multi)
        self._read_password = password
        self._log_ins = log_ins
        self._ended = ended
        self._limits = limits
        self._transfer = Transfer(ended, limits)

    def send(self, request: Any) -> Any:
        """Send a request, unless what `sending.checked` asks for says no."""
        context = super().send(request)
        sending.check()
        return context

    def _Connection__send(self, request: Any) -> Any:  # noqa: N802 - the base's own, which it calls after a 401, too
        """Send what changes something over a connection of its own.

        When a kept connection breaks before the answer, curl sends the request again by itself, though the
        engine may have carried it out: a migration or a policy's unit would be asked for twice.
        """
        context = super()._Connection__send(request)
        curl, body, headers, _ = context
        self._transfer = Transfer(self._ended, self._limits)
        self._transfer.take_over(curl, body, headers)
        if request.method != "GET":
            curl.setopt(pycurl.FRESH_CONNECT, 1)
        if (longest := waiting.longest()) is not None:
            curl.setopt(pycurl.TIMEOUT_MS, round(1000 * min(longest, self._timeout)))
        return context

    def wait(self, context: Any, failed_auth: bool = False) -> Any:
        """Wait for the answer; raises `BrokenOff` if we did not take it in."""
        try:
            return super().wait(context, failed_auth)
        except ovirtsdk4.Error:
            if self._transfer.broken_off:
                raise BrokenOff(self._transfer.broken_off) from None
            raise
        except UnicodeDecodeError:
            raise NotAnEngine("the headers of an answer are not ASCII") from None

    def _get_access_token(self) -> Any:
        """Log in, also after a 401: what was refused for it is sent again right afterwards."""
        password = self._read_password()
        self._password = password.text
        with self._log_ins.trying(password.mark):
            try:
                token = super()._get_access_token()
            except (KeyError, IndexError, TypeError):
                raise NotAnEngine("the log-in was answered without a token") from None
        sending.check()
        return token

    def _get_sso_response(self, url: str, params: Any = "") -> Any:
        """Ask the engine's single sign-on: for a token, or to forget one."""
        logging_out = url == self._sso_revoke_url
        body, transfer = io.BytesIO(), Transfer(_never if logging_out else self._ended, OF_LOG_INS)
        curl = pycurl.Curl()
        try:
            curl.setopt(pycurl.URL, url)
            curl.setopt(pycurl.POST, 1)
            curl.setopt(pycurl.COPYPOSTFIELDS, urlencode(params))
            curl.setopt(pycurl.HTTPHEADER, ["Accept: application/json"])
            curl.setopt(pycurl.USERAGENT, f"PythonSDK/{ovirtsdk4.get_version()}")
            if logging_out:
                curl.setopt(pycurl.TIMEOUT_MS, _LOG_OUT_MILLISECONDS)
            else:
                curl.setopt(pycurl.TIMEOUT, self._timeout)
            curl.setopt(pycurl.SSL_VERIFYPEER, 0 if self._insecure else 1)
            curl.setopt(pycurl.SSL_VERIFYHOST, 0 if self._insecure else 2)
            if self._ca_file is not None:
                curl.setopt(pycurl.CAINFO, self._ca_file)
            transfer.take_over(curl, body, io.BytesIO())
            curl.perform()
            status = curl.getinfo(pycurl.HTTP_CODE)
        except pycurl.error:
            if transfer.broken_off:
                raise BrokenOff(transfer.broken_off) from None
            raise
        finally:
            curl.close()
        if status in AWAY_STATUSES:
            raise pycurl.error(pycurl.E_COULDNT_CONNECT, f"HTTP status {status}")
        try:
            return json.loads(body.getvalue())
        except (ValueError, RecursionError):
            raise NotAnEngine("the log-in was not answered with JSON") from None


def _never() -> bool:
    return False
