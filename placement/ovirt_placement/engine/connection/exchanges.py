"""One request by `requests` that ends in time, whatever the other side does, and trusts whom curl trusts.

The time that requests is given is for each piece of an answer: one that trickles in, or a name that is looked
up, takes as long as it likes. So a thread of its own asks, and the one that waits for it interrupts it.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import queue
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter

from ovirt_placement.engine.connection.unanswered import Cause, Unanswered, of_requests, too_late
from ovirt_service.threads import BackgroundThread

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def proxy_of(url: str, environment: Mapping[str, str]) -> str | None:
    """The URL of the proxy for this one; None where there is none."""
    parts = urlsplit(url)
    proxy = _first(environment, *_variables(parts.scheme))
    if not proxy or _is_left_out(parts.hostname or "", _first(environment, "no_proxy", "NO_PROXY")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _variables(scheme: str) -> tuple[str, ...]:
    """Those that count, the first first; HTTP_PROXY does not: a client of a web server's CGI could set it."""
    own = ("http_proxy",) if scheme == "http" else (f"{scheme}_proxy", f"{scheme}_proxy".upper())
    return (*own, "all_proxy", "ALL_PROXY")


def _first(environment: Mapping[str, str], *names: str) -> str:
    """What the first of these says; an empty one says nothing."""
    return next((value for name in names if (value := environment.get(name))), "")


def _is_left_out(host: str, listed: str) -> bool:
    if listed == "*":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return any(f".{host}".endswith(f".{domain}") for domain in _domains(listed))
    return any(address in network for network in _networks(listed))


def _domains(listed: str) -> Iterator[str]:
    for word in listed.lower().split(","):
        if domain := word.strip().strip("."):
            yield domain


def _networks(listed: str) -> Iterator[_Network]:
    for word in listed.split(","):
        with contextlib.suppress(ValueError):
            yield ipaddress.ip_network(word.strip(), strict=False)


#: Bytes that an answer of the single sign-on may have; it has a few hundred.
_MOST: Final = 2**20
_PIECE: Final = 2**16
#: How often it is looked whether anybody waits still.
_LOOK_SECONDS: Final = 0.1

# The connection itself warns of an engine whose certificate is not checked, and once.
urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)


class Answer(NamedTuple):
    """The status of HTTP, and the body."""

    status: int
    body: bytes


class Question(NamedTuple):
    """A request of HTTP."""

    method: str
    url: str
    form: Mapping[str, str] | None
    headers: Mapping[str, str]


class Trust(NamedTuple):
    """Whose certificates count: those of one CA, else the system's; or anybody's."""

    ca_file: str | None
    insecure: bool

    def context(self) -> ssl.SSLContext:
        """Read the CA's file; raises `Unanswered` if there is none in it."""
        try:
            context = ssl.create_default_context(cafile=None if self.insecure else self.ca_file)
        except OSError as error:
            raise Unanswered(Cause.NO_AUTHORITY, error.strerror or str(error)) from None
        # As curl verifies: an engine's CA may lack what Python from 3.13 on asks for, and the file may hold
        # the certificate of the engine alone.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def post(
    url: str,
    form: Mapping[str, str],
    headers: Mapping[str, str],
    *,
    trust: Trust,
    seconds: float,
    ended: Callable[[], bool],
) -> Answer:
    """Send a form and take the answer in; a redirection is an answer as any.

    Raises `Unanswered`, also after this time, and soon after `ended` says that nobody waits any more.
    """
    return _asked(Question("POST", url, form, headers), trust, seconds, ended)


def get(url: str, headers: Mapping[str, str], *, trust: Trust, seconds: float) -> Answer:
    """Read a small document; as `post` in all else."""
    return _asked(Question("GET", url, None, headers), trust, seconds, lambda: False)


def _asked(question: Question, trust: Trust, seconds: float, ended: Callable[[], bool]) -> Answer:
    adapter = _Adapter(trust.context() if question.url.startswith("https:") else None)
    session = _Session(adapter, verify=not trust.insecure)
    outcomes: queue.SimpleQueue[Answer | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            outcomes.put(_exchange(session, question, seconds))
        except Exception as error:  # it is raised where the answer is awaited
            outcomes.put(error)

    try:
        BackgroundThread(target=ask, name="log-in").start()
    except RuntimeError:  # Python 3.12.0 and 3.12.1 begin none at the end of the process
        ask()
    try:
        outcome = _awaited(outcomes, seconds, ended)
    finally:
        adapter.interrupt()
    if isinstance(outcome, requests.RequestException):
        raise of_requests(outcome, seconds) from None
    if isinstance(outcome, ValueError):
        raise Unanswered(Cause.NO_ENGINE, f"the answer is not valid HTTP: {outcome}") from None
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _awaited(
    outcomes: queue.SimpleQueue[Answer | Exception], seconds: float, ended: Callable[[], bool]
) -> Answer | Exception:
    until = time.monotonic() + seconds
    while True:
        try:
            return outcomes.get(timeout=max(0.0, min(_LOOK_SECONDS, until - time.monotonic())))
        except queue.Empty:
            if ended():
                raise Unanswered(Cause.INTERRUPTED, "nobody waits for its answer any more") from None
            if time.monotonic() >= until:
                raise too_late(seconds) from None


def _exchange(session: requests.Session, question: Question, seconds: float) -> Answer:
    proxy = proxy_of(question.url, os.environ)
    with (
        session,
        session.request(
            question.method,
            question.url,
            data=question.form,
            # What is not packed cannot unpack to more than was sent.
            headers={**question.headers, "Accept-Encoding": "identity"},
            proxies={"http": proxy, "https": proxy} if proxy else {},
            timeout=seconds,
            stream=True,
        ) as answer,
    ):
        body = b""
        for piece in answer.iter_content(_PIECE):
            body += piece
            if len(body) > _MOST:
                raise Unanswered(Cause.INTERRUPTED, f"its answer is larger than {_MOST // 2**20} MiB")
        return Answer(answer.status_code, body)


class _Session(requests.Session):
    """Knows what it is given, no .netrc and no variables with proxies and CAs; follows no redirection."""

    def __init__(self, adapter: _Adapter, *, verify: bool) -> None:
        super().__init__()
        self.trust_env = False
        self.verify = verify
        self.mount("https://", adapter)
        self.mount("http://", adapter)

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Say that there is none: the base would read all of the answer, and what it names."""


class _Adapter(HTTPAdapter):
    """Verifies with a context that it is given, and can break off what is under way."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._sockets: list[socket.socket] = []
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        super().init_poolmanager(*arguments, ssl_context=self._context, **named)

    def proxy_manager_for(self, *arguments: Any, **named: Any) -> Any:
        return super().proxy_manager_for(*arguments, ssl_context=self._context, **named)

    def cert_verify(self, *arguments: Any, **named: Any) -> None:
        """Add no CAs to those of the context, as the base would."""

    def get_connection_with_tls_context(self, *arguments: Any, **named: Any) -> Any:
        """Remember the sockets of the pool that the base has: an answer keeps them to itself."""
        pool: Any = super().get_connection_with_tls_context(*arguments, **named)
        make = pool.ConnectionCls

        def remembered(*arguments: Any, **named: Any) -> Any:
            connection = make(*arguments, **named)
            connect = connection.connect

            def connected() -> None:
                connect()
                self._sockets.append(connection.sock)

            connection.connect = connected
            return connection

        pool.ConnectionCls = remembered
        return pool

    def interrupt(self) -> None:
        """End what is under way, for the thread that asks; for any thread."""
        for connected in self._sockets:
            with contextlib.suppress(OSError):
                # Not the method of TLS's, which another thread cannot call while it reads.
                socket.socket.shutdown(connected, socket.SHUT_RDWR)
