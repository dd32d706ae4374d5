"""Connects to the engine through its SDK, and sorts what can go wrong into what to do about it."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import msgspec
import ovirtsdk4
from ovirtsdk4 import http

from ovirt_placement.config import EngineSettings
from ovirt_placement.config_url import check_url, exposes
from ovirt_placement.engine.connection.exchanges import Trust
from ovirt_placement.engine.connection.failures import (
    SDK_ERRORS,
    EngineAway,
    EngineFault,
    EngineSetupError,
    failure_of,
    failure_of_answer,
    failure_of_page,
    failure_of_transport,
    fault_of,
)
from ovirt_placement.engine.connection.log_ins import LogIns
from ovirt_placement.engine.connection.password import read_password
from ovirt_placement.engine.connection.sdk import SdkConnection, SignOn
from ovirt_placement.engine.connection.sso import SingleSignOn
from ovirt_placement.engine.connection.transfers import OF_ANSWERS, Limits
from ovirt_placement.engine.connection.user_tokens import VARIABLE, GivenToken, given_token
from ovirt_service.errors import UserError
from ovirt_service.saying import Said

__all__ = ["EngineAway", "EngineConnection", "EngineFault", "EngineSetupError", "connect"]

_log = logging.getLogger(__name__)
_said = Said()

_CHANGED = frozenset({200, 201, 202})
#: What is under way may take so long to notice that nobody waits for it.
_LAST_SECONDS = 1.2


class EngineConnection:
    """An authenticated way to an engine, for any thread; made at the first request, and again after a loss.

    Threads ask side by side, each in a session of its own: a slow answer holds up nobody else. Sessions are
    used again, and there are no more of them than were ever needed at once.

    Every method raises `EngineAway` when the engine does not answer (asking again later may help),
    `EngineSetupError` when a person must set something right, and `EngineFault` when the engine refuses.
    """

    def __init__(
        self,
        settings: EngineSettings,
        environment: Mapping[str, str] = os.environ,
        limits: Limits = OF_ANSWERS,
    ) -> None:
        """Check the settings; raises `UserError` if something is missing or must not be read."""
        self._token = given_token(environment)
        if self._token is not None:
            settings = msgspec.structs.replace(settings, username=f"the user of {VARIABLE}")
        self.url, self.username = _address(settings)
        self.settings = settings
        self._changed = threading.Condition()
        #: Sessions that nobody uses now, the one that was used last at the end; and how many are in use.
        self._idle: list[SdkConnection] = []
        self._in_use = 0
        #: Of sessions that were dropped: the next ones take them, or log in where they are void.
        self._tokens: set[str] = set()
        self._limits = limits
        self._ended = False
        self._environment = environment
        self._log_ins = LogIns(self.url, self.username)
        if self._token is None:
            read_password(settings, environment)
        danger = exposes(self.url, insecure=settings.insecure)
        if danger and _said.is_news(self.url, danger):
            _log.warning("%s: %s", settings.address, danger)

    @contextmanager
    def session(self) -> Iterator[ovirtsdk4.Connection]:
        """Lend a connection of the SDK's, logged in; raises `failures.SDK_ERRORS`, see `failures.failure_of`.

        Unless the engine has answered, it is dropped afterwards: it holds the request still; its token stays.
        """
        sdk = self._borrow()
        usable = False
        try:
            if sdk is None:
                sdk = self._open()
            yield sdk
            usable = True
        except ovirtsdk4.Error as error:
            usable = isinstance(failure_of(error, self.settings, ""), EngineFault)
            raise
        finally:
            self._give_back(sdk, usable=usable)

    def get(self, path: str, **query: str | int | bool) -> bytes:
        """Read `/vms` and the like as the XML that the engine sent: token, renewal and TLS are the SDK's."""
        words = {name: _word(value) for name, value in query.items()}
        answer = self._exchange(http.Request(method="GET", path=path, query=words))
        if answer.code == 200 and _is_xml(answer.headers):
            return bytes(answer.body)
        raise self._failure(answer, path)

    def send(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Change something by POST, PUT or DELETE, in XML as `get` reads it; return the answer."""
        request = http.Request(method=method, path=path, body=body.decode() or None)
        answer = self._exchange(request)
        if answer.code in _CHANGED:
            return bytes(answer.body)
        raise self._failure(answer, path)

    def _failure(self, answer: http.Response, path: str) -> UserError:
        """Sort an answer; of what it has not, the engine says so in XML, or with no word at all."""
        fault = fault_of(answer.body)
        if answer.code == 404 and answer.body.strip() and not fault:
            return failure_of_page(self.settings, path)
        return failure_of_answer(answer.code, fault, self.settings, path, bytes(answer.body))

    def _exchange(self, request: http.Request) -> http.Response:
        try:
            with self.session() as sdk:
                return sdk.wait(sdk.send(request))
        except SDK_ERRORS as error:
            raise failure_of_transport(error, self.settings) from None

    def _borrow(self) -> SdkConnection | None:
        """Take one that nobody uses; None where one is to be opened, while nobody waits for that."""
        with self._changed:
            self._in_use += 1
            return self._idle.pop() if self._idle else None

    def _give_back(self, sdk: SdkConnection | None, *, usable: bool) -> None:
        """Keep it for the next request; what has closed it may have closed those that rest, too."""
        with self._changed:
            self._in_use -= 1
            own = [] if sdk is None else [sdk]
            unusable, self._idle = ([], [*self._idle, *own]) if usable else ([*own, *self._idle], [])
            self._tokens.update(one.token for one in unusable)
            self._changed.notify_all()
        for one in unusable:
            one.close(logout=False)

    def end(self) -> None:
        """Break off what is under way, and wait for no answer any more."""
        self._ended = True

    def close(self) -> None:
        """Log out, if the engine can be reached; breaks off requests that nobody awaits."""
        self.end()
        with self._changed:
            self._changed.wait_for(lambda: not self._in_use, timeout=_LAST_SECONDS)
            idle, self._idle = self._idle, []
            tokens, self._tokens = self._tokens.union(one.token for one in idle), set()
        for sdk in idle:
            sdk.close(logout=False)
        for token in tokens:
            try:
                self._sign_on().log_out(token)
            except SDK_ERRORS as error:
                _log.debug("not logged out: %s", error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> SdkConnection:
        with self._changed:
            token = self._tokens.pop() if self._tokens else None
        return SdkConnection(
            sso=self._sign_on(),
            token=token,
            ended=lambda: self._ended,
            limits=self._limits,
            url=self.url,
            ca_file=self._ca_file,
            insecure=self.settings.insecure,
            timeout=self._seconds,
        )

    @property
    def _ca_file(self) -> str | None:
        return None if self.settings.ca_file is None else str(self.settings.ca_file)

    @property
    def _seconds(self) -> int:
        return max(1, round(self.settings.timeout_seconds))

    def _sign_on(self) -> SignOn:
        if self._token is not None:
            return GivenToken(self._token, self.settings.address)
        return SingleSignOn(
            self.url,
            self.username,
            lambda: read_password(self.settings, self._environment),
            log_ins=self._log_ins,
            ended=lambda: self._ended,
            trust=Trust(self._ca_file, self.settings.insecure),
            timeout=self._seconds,
        )


def connect(settings: EngineSettings) -> EngineConnection:
    """Prepare a connection; nothing is sent before the first request.

    With the variable OVIRT_TOKEN, its user is who asks. Raises `UserError` if the settings name no engine or
    user, or the password cannot be had.
    """
    return EngineConnection(settings)


def _address(settings: EngineSettings) -> tuple[str, str]:
    if not settings.url:
        raise UserError("no engine: set url under [engine] in the configuration, or the variable OVIRT_URL")
    check_url(settings.url)
    if not settings.username:
        raise UserError("no user: set username under [engine], or the variable OVIRT_USERNAME")
    if settings.ca_file is not None and not settings.insecure and not os.access(settings.ca_file, os.R_OK):
        raise UserError(f"[engine] ca_file: {settings.ca_file}: cannot be read")
    return settings.url.rstrip("/"), settings.username


def _word(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_xml(headers: Any) -> bool:
    types = [line for line in headers if line.lower().startswith("content-type:")]
    return bool(types) and "xml" in types[-1].lower()
