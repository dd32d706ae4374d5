"""Connects to the engine, and sorts what can go wrong into what to do about it.

What is read comes as the XML that the engine sent. What is changed may go through the SDK's services, which
write and read their documents, and send them by `Session`: no request goes another way.
"""

import logging
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

import msgspec
import ovirtsdk4
import requests
from lxml import etree
from ovirtsdk4 import http

from ovirt_placement.config import EngineSettings, check_url, exposes
from ovirt_placement.engine import xml
from ovirt_placement.engine.connection.exchanges import OF_ANSWERS, Answer, Limits, Server, Trust
from ovirt_placement.engine.connection.failures import (
    SDK_ERRORS,
    EngineAway,
    EngineFault,
    EngineSetupError,
    failure_of,
    failure_of_answer,
    fault_of,
)
from ovirt_placement.engine.connection.log_ins import (
    VARIABLE,
    SingleSignOn,
    given_token,
    read_password,
    url_of,
)
from ovirt_service.errors import UserError
from ovirt_service.repetition import Said

_Found = TypeVar("_Found")

_log = logging.getLogger(__name__)
_said = Said()

_HEADERS = {
    "User-Agent": f"PythonSDK/{ovirtsdk4.get_version()}",
    "Version": "4",
    "Content-Type": "application/xml",
    "Accept": "application/xml",
}
_CHANGED = frozenset({HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED})
#: What ends a request: sorted already, or as it was raised.
_FAILURES: tuple[type[Exception], ...] = (UserError, *SDK_ERRORS)
#: For so long a request under way is waited for when the connection closes.
_LAST_SECONDS = 1.2


# What a thread asks of its requests: a check right before one is sent, and how long it waits.

_checks: ContextVar[tuple[Callable[[], None], ...]] = ContextVar("checks", default=())
_longest: ContextVar[float] = ContextVar("longest", default=math.inf)


@contextmanager
def checked(check: Callable[[], None]) -> Iterator[None]:
    """Have `check` called before this thread sends, after any log-in; what it raises prevents that."""
    token = _checks.set((*_checks.get(), check))
    try:
        yield
    finally:
        _checks.reset(token)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Have each request of this thread that takes longer end with `EngineAway`; never later than it would."""
    token = _longest.set(seconds)
    try:
        yield
    finally:
        _longest.reset(token)


class Session:
    """A connection that is logged in; the SDK's services take it for one of the SDK's. For one thread."""

    def __init__(
        self, url: str, server: Server, log_in: Callable[[], str], token: str | None, seconds: float
    ) -> None:
        """Log in, which raises as `SingleSignOn.log_in`, unless there is a token."""
        self._url = url
        self._server = server
        self._log_in = log_in
        self._seconds = seconds
        self.token = token or log_in()

    def ask(self, method: str, path: str, query: Mapping[str, Any], body: bytes | None = None) -> Answer:
        """Ask, unless what `checked` asks for says no; log in once more where the token is over.

        Raises `Unanswered`, and what the log-in raises.
        """
        answer = self._send(method, path, query, body)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self.token = self._log_in()
            answer = self._send(method, path, query, body)
        return answer

    def _send(self, method: str, path: str, query: Mapping[str, Any], body: bytes | None) -> Answer:
        address = f"{self._url}{path}{f'?{urlencode(sorted(query.items()))}' if query else ''}"
        headers = {**_HEADERS, "Authorization": f"Bearer {self.token}"}
        seconds = min(self._seconds, _longest.get())
        for check in _checks.get():
            check()
        return self._server.ask(requests.Request(method, address, headers, data=body), seconds)

    def system_service(self) -> Any:
        """The first of the SDK's services."""
        from ovirtsdk4.services import SystemService  # takes a second to load

        return SystemService(self, "")

    def send(self, request: http.Request) -> Answer:
        """Ask for a service of the SDK's."""
        body = None if request.body is None else request.body.encode()
        return self.ask(request.method, request.path, request.query, body)

    def wait(self, answer: Answer) -> http.Response:
        """Give the answer as the SDK's services want it."""
        return http.Response(answer.body, answer.status, [answer.content_type])

    def check_xml_content_type(self, response: http.Response) -> None:
        """Raise `ovirtsdk4.Error` for a document that the SDK must not parse."""
        (content_type,) = response.headers
        if not _is_xml(content_type):
            raise ovirtsdk4.Error(f"The response content type '{content_type}' isn't the expected XML")
        try:
            xml.root(response.body)  # of malformed XML the SDK says so by an error without a type of its own
        except etree.XMLSyntaxError as error:
            raise ovirtsdk4.Error(f"its answer is malformed XML: {error}") from None

    def close(self) -> None:
        """Release it; the token stays."""
        self._server.close()


class EngineConnection:
    """An authenticated way to an engine, for any thread; made at the first request, and again after a loss.

    Threads ask side by side, each in a session of its own: a slow answer holds up no other. Sessions are
    used again, and there are no more of them than were ever needed at once.

    Every method, and every function that is given a connection, raises `EngineAway` when the engine does not
    answer (asking again later may help), `EngineSetupError` when a person must set something right, and
    `EngineFault` when the engine refuses.
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
        #: Those that are not in use, the one that was used last at the end; and how many are in use.
        self._idle: list[Session] = []
        self._in_use = 0
        #: Of sessions that were dropped: the next ones take them, or log in where they are void.
        self._tokens: set[str] = set()
        self._limits = limits
        self._ended = False
        self._sso = SingleSignOn(settings, environment, lambda: self._ended)
        if self._token is None:
            read_password(settings, environment)
        danger = exposes(self.url, insecure=settings.insecure)
        if danger and _said.is_news(self.url, danger):
            _log.warning("%s: %s", settings.address, danger)

    @contextmanager
    def session(self, path: str = "") -> Iterator[Session]:
        """Lend one that is logged in, for the services of the SDK; `path` is what a failure names.

        Unless the engine has answered, it is dropped afterwards, with its connection, which may lead to what
        answers in the engine's place; its token stays.
        """
        with self._changed:
            self._in_use += 1
            session = self._idle.pop() if self._idle else None
        usable = False
        try:
            session = session or self._open()  # which holds up no other thread
            yield session
            usable = True
        except _FAILURES as error:
            failure = error if isinstance(error, UserError) else failure_of(error, self.settings, path)
            usable = isinstance(failure, EngineFault) and (bool(failure.fault) or failure.code == 404)
            raise failure from None
        finally:
            self._give_back(session, usable=usable)

    def get(self, path: str, **query: str | int | bool) -> bytes:
        """Read `/vms` and the like as the XML that the engine sent."""
        words = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in query.items()
        }
        return self._send("GET", path, words, None)

    def read(self, path: str, parse: Callable[[bytes], _Found], **query: str | int | bool) -> _Found:
        """What the answer that `get` gives says, as far as an engine can say it."""
        return self.parsed(self.get(path, **query), parse)

    def parsed(self, content: bytes, parse: Callable[[bytes], _Found]) -> _Found:
        """What an answer says; malformed XML, or that of something else, no engine has sent."""
        what = f"{self.settings.address}: what answers there sends"
        try:
            return parse(content)
        except etree.XMLSyntaxError as error:
            if not error.lineno:  # no line was read: libxml2 has no other way to say that memory ran out
                raise MemoryError from error
            raise EngineSetupError(f"{what} malformed XML: {error}") from None
        except xml.Unexpected as error:
            raise EngineAway(f"{what} something else: {error}", request_sent=True) from None
        except xml.TooLarge as error:
            raise EngineSetupError(f"{what} too much: {error}") from None

    def send(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Change something by POST, PUT or DELETE, in XML as `get` reads it; return the answer."""
        return self._send(method, path, {}, body or None)

    def _send(self, method: str, path: str, query: Mapping[str, str], body: bytes | None) -> bytes:
        with self.session(path) as session:
            answer = session.ask(method, path, query, body)
            is_document = answer.status == HTTPStatus.OK and _is_xml(answer.content_type)
            if is_document if method == "GET" else answer.status in _CHANGED:
                return answer.body
            raise failure_of_answer(answer.status, fault_of(answer.body), self.settings, path, answer.body)

    def _give_back(self, session: Session | None, *, usable: bool) -> None:
        """Keep it for the next request; what has closed it may have closed those that rest, too."""
        with self._changed:
            self._in_use -= 1
            own = [] if session is None else [session]
            unusable, self._idle = ([], [*self._idle, *own]) if usable else ([*own, *self._idle], [])
            self._tokens.update(one.token for one in unusable)
            self._changed.notify_all()
        for one in unusable:
            one.close()

    def end(self) -> None:
        """Break off what is under way, and wait for no answer any more."""
        self._ended = True

    def close(self) -> None:
        """Log out, if the engine can be reached; breaks off requests under way."""
        self.end()
        with self._changed:
            self._changed.wait_for(lambda: not self._in_use, timeout=_LAST_SECONDS)
            idle, self._idle = self._idle, []
            tokens, self._tokens = self._tokens.union(one.token for one in idle), set()
        for session in idle:
            session.close()
        for token in tokens if self._token is None else ():  # else it is the caller's, who may need it still
            try:
                self._sso.log_out(token)
            except SDK_ERRORS as error:
                _log.debug("not logged out: %s", error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> Session:
        with self._changed:
            token = self._tokens.pop() if self._tokens else self._token
        trust = Trust(self.settings.ca_file, self.settings.insecure)
        server = Server(self.url, trust, lambda: self._ended, self._limits)
        return Session(self.url, server, self._log_in, token, self.settings.timeout_seconds)

    def _log_in(self) -> str:
        if self._token is None:
            return self._sso.log_in()
        raise EngineSetupError(
            f"{self.settings.address}: the engine refuses the token of {VARIABLE}: it is over, or of another"
            " engine; log in again, or unset the variable"
        )


def _address(settings: EngineSettings) -> tuple[str, str]:
    url = url_of(settings)
    check_url(url)
    if not settings.username:
        raise UserError("no user: set username under [engine], or the variable OVIRT_USERNAME")
    if settings.ca_file is not None and not settings.insecure and not os.access(settings.ca_file, os.R_OK):
        raise UserError(f"[engine] ca_file: {settings.ca_file}: cannot be read")
    return url, settings.username


def _is_xml(content_type: str) -> bool:
    return "xml" in content_type.lower()
