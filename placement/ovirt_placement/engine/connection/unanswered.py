"""Why a request got no answer, sorted by who can do something about it."""

from __future__ import annotations

import enum
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import requests
import urllib3

from ovirt_service.addresses import redacted
from ovirt_service.legible import unbroken


class Cause(enum.Enum):
    """What kept the answer away."""

    #: No address belongs to the name of the host.
    UNKNOWN_HOST = enum.auto()
    #: The certificate is for another name than that in the URL.
    OTHER_NAME = enum.auto()
    #: The certificate has expired, or is not valid yet.
    EXPIRED = enum.auto()
    #: None of the CAs that count has signed the certificate.
    UNTRUSTED = enum.auto()
    #: The file of the CA holds none.
    NO_AUTHORITY = enum.auto()
    #: Nothing that speaks as the URL says can be there.
    BAD_URL = enum.auto()
    #: What answers at an https address speaks no TLS.
    NO_TLS = enum.auto()
    #: The request cannot have reached the engine.
    UNSENT = enum.auto()
    #: The request may have reached the engine.
    LOST = enum.auto()
    #: What answers is no engine: its log-in is not that of an engine, or its answer breaks HTTP's rules.
    NO_ENGINE = enum.auto()
    #: We broke the answer off: it was too large, or is not wanted any more.
    INTERRUPTED = enum.auto()


#: A web server answers these for an engine that starts or stops.
AWAY_STATUSES: Final = frozenset({502, 503, 504})


class Unanswered(Exception):
    """A request got no answer that was taken in; the text says what happened, without the address."""

    def __init__(self, cause: Cause, text: str) -> None:
        super().__init__(text)
        self.cause = cause
        #: The status of HTTP, of an answer that began to come.
        self.begun: int | None = None


#: X509_V_ERR_* of OpenSSL's: not yet valid, expired; another host name, another address.
_NOT_VALID_NOW: Final = frozenset({9, 10})
_OTHER_NAME: Final = frozenset({62, 64})
#: What OpenSSL calls an answer that is no TLS, or TLS of no version that it speaks.
_NO_TLS: Final = ("VERSION", "RECORD_LAYER", "PACKET_LENGTH", "HTTP_REQUEST")

#: What says that the way there is through a proxy, and fails.
_OF_PROXIES: Final = (
    requests.exceptions.ProxyError,
    requests.exceptions.InvalidProxyURL,
    urllib3.exceptions.ProxySchemeUnknown,
)


def of_requests(error: requests.RequestException, seconds: float) -> Unanswered:
    """Sort an error of requests', which keeps what happened somewhere among its causes.

    `seconds` is how long an answer was waited for.
    """
    causes = [*_causes(error)]
    inner = next((cause for cause in causes if isinstance(cause, OSError) and cause.strerror), None)
    text = redacted(unbroken((inner.strerror if inner is not None else None) or str(causes[-1])))
    if any(isinstance(cause, _OF_PROXIES) for cause in causes):
        return Unanswered(Cause.UNSENT, f"the way there is through an HTTP proxy, and that fails: {text}")
    if isinstance(inner, ssl.SSLError):
        return _of_tls(inner)
    if isinstance(inner, socket.gaierror):
        return Unanswered(Cause.UNKNOWN_HOST, text)
    if isinstance(error, ValueError):  # requests has several kinds of URLs that are none
        return Unanswered(Cause.BAD_URL, text)
    if any(isinstance(cause, urllib3.exceptions.NewConnectionError) for cause in causes):
        return Unanswered(Cause.UNSENT, text)
    if isinstance(error, requests.ConnectTimeout):
        return Unanswered(Cause.UNSENT, f"no connection within {seconds:g} s")
    if isinstance(error, requests.Timeout):
        return too_late(seconds)
    return Unanswered(Cause.LOST, text)


def too_late(seconds: float) -> Unanswered:
    """No answer in time, by the limit of the one that asks or by that of the connection."""
    return Unanswered(Cause.LOST, f"no answer within {seconds:g} s")


def _of_tls(error: ssl.SSLError) -> Unanswered:
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _OTHER_NAME:
            return Unanswered(Cause.OTHER_NAME, error.verify_message)
        valid = error.verify_code not in _NOT_VALID_NOW
        return Unanswered(Cause.UNTRUSTED if valid else Cause.EXPIRED, error.verify_message)
    reason = error.reason or str(error)
    no_tls = any(word in reason for word in _NO_TLS)
    return Unanswered(Cause.NO_TLS if no_tls else Cause.LOST, reason.replace("_", " ").lower())


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and all that lies within it, the nearest first."""
    found, waiting = set[int](), [error]
    while waiting:
        cause = waiting.pop(0)
        if id(cause) in found:
            continue
        found.add(id(cause))
        yield cause
        inner = (*cause.args, getattr(cause, "reason", None), cause.__cause__, cause.__context__)
        waiting += [each for each in inner if isinstance(each, BaseException)]
