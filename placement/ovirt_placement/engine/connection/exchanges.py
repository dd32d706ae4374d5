"""One request by `requests` that ends in time, whatever the other side does, and trusts whom curl trusts.

The time that requests is given is for each piece of an answer: one that trickles in, or a name that is looked
up, takes as long as it likes. So a thread of its own asks, and the one that waits for it interrupts it. An
answer of a few hundred kilobytes can unpack to gigabytes: bytes are counted as they arrive, and unpacked.
"""

from __future__ import annotations

import contextlib
import http.client
import queue
import socket
import ssl
import time
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.utils import get_environ_proxies

from ovirt_placement.engine.connection.failures import Cause, Unanswered, sort_requests_error, too_late
from ovirt_service.process import BackgroundThread

_MIB: Final = 2**20
_PIECE: Final = 2**16
#: How many answers may say that another one follows.
_MOST_ANNOUNCED: Final = 10
#: How often it is checked whether the answer is awaited still.
_CHECK_SECONDS: Final = 0.1

# The connection itself warns of an engine whose certificate is not checked, and once.
urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)


class Limits(NamedTuple):
    """How many bytes an answer may have: on its way, and unpacked."""

    received: int
    unpacked: int


#: Ten thousand VMs with all that hangs on them are 4 MiB on their way, and 90 MiB unpacked.
OF_ANSWERS: Final = Limits(128 * _MIB, 512 * _MIB)
#: An answer of the single sign-on has a few hundred bytes.
_OF_SIGN_ON: Final = Limits(_MIB, _MIB)


class Answer(NamedTuple):
    """The status of HTTP, what kind of document it is, and the body."""

    status: int
    content_type: str
    body: bytes


class Trust(NamedTuple):
    """Whose certificates count: those of one CA, else the system's; or every certificate."""

    ca_file: Path | None
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


def ask_once(
    url: str,
    content: Mapping[str, str] | bytes | None,
    headers: Mapping[str, str],
    *,
    trust: Trust,
    seconds: float,
    ended: Callable[[], bool] = lambda: False,
) -> Answer:
    """Send a form or a document, or ask for one, and take the small answer in; raises as `Server.ask`."""
    server = Server(url, trust, ended, _OF_SIGN_ON)
    try:
        method = "GET" if content is None else "POST"
        return server.ask(requests.Request(method, url, headers, data=content), seconds)
    finally:
        server.close()


class Server:
    """A server and the connection to it, which is kept from one request to the next; for one thread."""

    def __init__(self, url: str, trust: Trust, ended: Callable[[], bool], limits: Limits) -> None:
        """`ended` breaks off what is under way.

        Raises `Unanswered` if a CA cannot be read, where the server speaks TLS.
        """
        self._adapter = _Adapter(trust.context() if url.startswith("https:") else None)
        self._session = _Session(self._adapter, verify=not trust.insecure)
        self._ended = ended
        self._limits = limits
        #: To the thread that asks, once there is one.
        self._asking: _Handover | None = None

    def ask(self, question: requests.Request, seconds: float) -> Answer:
        """Send a request and take the answer in; a redirection is an answer as any.

        Raises `Unanswered`, also after this time, and soon after `ended` says that the answer is not awaited
        any more. What may change something is sent once, and over a new connection: whether a kept one still
        stands is seen only once it is sent.
        """
        if question.method != "GET":
            self._session.close()
        carry_out = partial(_carry_out, self._session, question, seconds, self._limits)
        kept = self._adapter.connections
        self._adapter.begun, until = None, time.monotonic() + seconds
        outcome = self._awaited(carry_out, until) or too_late(seconds)
        if question.method == "GET" and kept and self._adapter.connections == kept and _is_broken(outcome):
            outcome = self._awaited(carry_out, until) or too_late(seconds)
        if isinstance(outcome, Answer):
            return outcome
        if isinstance(outcome, requests.RequestException):
            outcome = sort_requests_error(outcome, seconds)
        elif isinstance(outcome, ValueError | http.client.HTTPException):
            outcome = Unanswered(Cause.NO_ENGINE, f"the answer is not valid HTTP: {outcome}")
        if isinstance(outcome, Unanswered):
            outcome.begun = self._adapter.begun
        raise outcome from None

    def close(self) -> None:
        """End the connection, with what is under way."""
        self._adapter.interrupt()
        self._session.close()
        self._end_thread()

    def _awaited(self, carry_out: _Exchange, until: float) -> _Outcome | None:
        """What comes of it in the thread that asks; None where that takes too long."""
        outcomes = queue.SimpleQueue[_Outcome]()
        if self._asking is None:
            self._asking = queue.SimpleQueue()
            weakref.finalize(self, self._asking.put, None)  # without a reference it is closed at once
            try:
                BackgroundThread(target=_carry_out_each, args=(self._asking,), name="requests").start()
            except RuntimeError:  # Python 3.12.0 and 3.12.1 begin none at the end of the process
                self._end_thread()
                return carry_out()
        self._asking.put((carry_out, outcomes))
        while True:
            try:
                return outcomes.get(timeout=max(0.0, min(_CHECK_SECONDS, until - time.monotonic())))
            except queue.Empty:
                ended = self._ended()
                if ended or time.monotonic() >= until:
                    self._adapter.interrupt()
                    self._end_thread()  # it may look up a name still, as long as that takes
                    if not ended:
                        return None
                    return Unanswered(Cause.INTERRUPTED, "its answer is not waited for any more")

    def _end_thread(self) -> None:
        if self._asking is not None:
            self._asking.put(None)
            self._asking = None


def _is_broken(outcome: _Outcome) -> bool:
    """Whether a connection was at its end before an answer came, as one is that was kept for too long."""
    return isinstance(outcome, requests.ConnectionError) and not isinstance(outcome, requests.Timeout)


_Outcome = Answer | Exception
_Exchange = Callable[[], _Outcome]
_Handover = queue.SimpleQueue[tuple[_Exchange, queue.SimpleQueue[_Outcome]] | None]


def _carry_out_each(asking: _Handover) -> None:
    """What the thread of a server does: a thread for each request would cost a quarter of that."""
    while (given := asking.get()) is not None:
        carry_out, outcomes = given
        outcomes.put(carry_out())
        del given, carry_out, outcomes  # an answer may have 90 MiB


def _carry_out(
    session: requests.Session, question: requests.Request, seconds: float, limits: Limits
) -> _Outcome:
    """What is answered, or what is to be raised where that is awaited."""
    try:
        # As the session would prepare it, which looks for what may be merged a long time.
        question.headers = {**session.headers, "Accept-Encoding": "gzip", **question.headers}
        question.cookies = session.cookies
        proxies = get_environ_proxies(str(question.url))
        with session.send(question.prepare(), proxies=proxies, timeout=seconds, stream=True) as answer:
            pieces, unpacked = [], 0
            for piece in answer.iter_content(_PIECE):
                pieces.append(piece)
                unpacked += len(piece)
                _check_size(answer.raw.tell(), limits.received, "")
                _check_size(unpacked, limits.unpacked, " unpacked")
            return Answer(answer.status_code, answer.headers.get("Content-Type", ""), b"".join(pieces))
    except Exception as error:
        return error


def _check_size(found: int, most: int, kind: str) -> None:
    if found > most:
        size = f"{most // _MIB} MiB" if most >= _MIB else f"{most} bytes"
        raise Unanswered(Cause.INTERRUPTED, f"its answer is larger than {size}{kind}")


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
        self._socket: socket.socket | None = None
        self._interrupted = False
        #: How many were made.
        self.connections = 0
        #: The status of the answer that comes in.
        self.begun: int | None = None
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        super().init_poolmanager(*arguments, ssl_context=self._context, **named)

    def proxy_manager_for(self, *arguments: Any, **named: Any) -> Any:
        return super().proxy_manager_for(*arguments, ssl_context=self._context, **named)

    def cert_verify(self, *arguments: Any, **named: Any) -> None:
        """Add no CAs to those of the context, as the base would."""

    def get_connection_with_tls_context(self, *arguments: Any, **named: Any) -> Any:
        """Watch the sockets of the pool that the base has: an answer keeps them to itself."""
        pool: Any = super().get_connection_with_tls_context(*arguments, **named)
        if "ConnectionCls" not in vars(pool):
            adapter = weakref.proxy(self)  # without a reference it is closed at once
            watch = {"adapter": adapter, "response_class": partial(_Response, adapter)}
            pool.ConnectionCls = type("Connection", (_Connection, pool.ConnectionCls), watch)
        return pool

    def interrupt(self) -> None:
        """End what is under way, for the thread that asks; for any thread."""
        self._interrupted = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                # Not the method of TLS's, which another thread cannot call while it reads.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def remember(self, connected: socket.socket) -> None:
        """Keep what is to be interrupted; at once, if that was wanted before it stood."""
        self._socket = connected
        self.connections += 1
        if self._interrupted:
            self.interrupt()


class _Connection:
    """Shows an adapter its sockets; comes before a connection of urllib3's."""

    adapter: _Adapter
    sock: socket.socket

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        self.adapter.remember(self.sock)


class _Response(http.client.HTTPResponse):
    """Shows its status before its headers have come, and does not go on where it is announced for ever."""

    def __init__(self, adapter: _Adapter, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._adapter = adapter
        self._announced = 0

    def begin(self) -> None:
        """Read the header, and no answer with a part of it: how long its body is may be in the rest."""
        super().begin()
        if self.headers.defects:
            raise http.client.HTTPException("the header of its answer is cut off, or not valid")

    def _read_status(self) -> tuple[str, int, str]:
        found: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
        if found[1] != http.HTTPStatus.CONTINUE:
            self._adapter.begun = found[1]
        self._announced += 1
        if self._announced > _MOST_ANNOUNCED:
            raise http.client.HTTPException("100 Continue without end")
        return found
