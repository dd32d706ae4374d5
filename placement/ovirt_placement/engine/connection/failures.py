"""What can go wrong between us and an engine: it is away, we are set up wrongly, or it refuses."""

from __future__ import annotations

import enum
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlparse

import ovirtsdk4
import requests
import urllib3
from lxml import etree

from ovirt_placement.config import EngineSettings
from ovirt_service.errors import UserError
from ovirt_service.http.addresses import redacted
from ovirt_service.text import unbroken


class Cause(enum.Enum):
    """What kept the answer away; of what a person must set right the value says how."""

    UNKNOWN_HOST = 'no host is named "{host}": correct url under [engine], or the DNS'
    OTHER_NAME = (
        "the engine's certificate is for another name than {host}: write its name into url under [engine]"
    )
    EXPIRED = (
        "the engine's certificate is not valid now ({text}): renew it on the engine (`engine-setup"
        " --offline` offers that), or correct this machine's clock"
    )
    #: None of the CAs that count has signed the certificate.
    UNTRUSTED = (
        "the engine's certificate is not trusted ({text}): set ca_file under [engine] to its CA, which it"
        " gives at {root}/ovirt-engine/services/pki-resource?resource=ca-certificate&format=X509-PEM-CA"
    )
    NO_TLS = "what answers there speaks http, not https ({text}): correct url under [engine]"
    #: Nothing that speaks as the URL says can be there.
    BAD_URL = "{text}: correct url under [engine]"
    #: The file of the CA holds none.
    NO_AUTHORITY = "no authority"
    #: The request cannot have reached the engine.
    UNSENT = "unsent"
    #: The request may have reached the engine.
    LOST = "lost"
    #: What answers is no engine: its log-in is not that of an engine, or its answer breaks HTTP's rules.
    NO_ENGINE = "no engine"
    #: We broke the answer off: it was too large, or is not wanted any more.
    INTERRUPTED = "interrupted"


#: A web server answers these for an engine that starts or stops.
AWAY_STATUSES: Final = frozenset({502, 503, 504})


class Unanswered(Exception):
    """A request got no answer that was taken in; the text says what happened, without the address."""

    def __init__(self, cause: Cause, text: str) -> None:
        super().__init__(text)
        self.cause = cause
        #: The status of HTTP, of an answer that began to come.
        self.begun: int | None = None


class LogInRefused(Exception):
    """The engine refuses to log us in: its word for the reason, such as `access_denied`, and its sentence."""

    def __init__(self, kind: str, said: str) -> None:
        super().__init__(f"{kind}: {said}")
        self.kind = kind
        self.said = said.rstrip(".")


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


def sort_requests_error(error: requests.RequestException, seconds: float) -> Unanswered:
    """Sort an error of requests', which keeps what happened somewhere among its causes.

    `seconds` is how long an answer was waited for.
    """
    causes = [*_causes(error)]
    inner = next((cause for cause in causes if isinstance(cause, OSError) and cause.strerror), None)
    text = redacted(unbroken((inner.strerror if inner is not None else None) or str(causes[-1])))
    if any(isinstance(cause, _OF_PROXIES) for cause in causes):
        return Unanswered(Cause.UNSENT, f"the way there is through an HTTP proxy, and that fails: {text}")
    if isinstance(inner, ssl.SSLError):
        return _sort_tls_error(inner)
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


def _sort_tls_error(error: ssl.SSLError) -> Unanswered:
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


#: What a session raises, and the SDK's services over it.
SDK_ERRORS: tuple[type[Exception], ...] = (ovirtsdk4.Error, Unanswered, LogInRefused)
#: A longer text holds no fault of the engine's.
_LONGEST_FAULT = 2**20
#: How a listener that expects TLS ends a connection without it.
_ENDED_EARLY = ("reset", "empty reply", "disconnected", "closed connection", "without response", "aborted")


class EngineAway(UserError):
    """The engine does not answer; asking again later may help.

    `request_sent` shows whether the request may have reached it nevertheless.
    """

    def __init__(self, text: str, *, request_sent: bool) -> None:
        super().__init__(text)
        self.request_sent = request_sent


class EngineSetupError(UserError):
    """The engine cannot be talked to until a person sets something right: address, certificate, user."""


class EngineFault(UserError):
    """The engine understood the request and refused it, with its own reason.

    With the code 404 it is the engine that has no such thing: a page of a web server is `EngineAway`.
    """

    def __init__(self, text: str, *, code: int, fault: Fault) -> None:
        super().__init__(text)
        self.code = code
        self.fault = fault


@dataclass(frozen=True)
class Fault:
    """The `<fault>` of an answer; both texts are empty where there is none."""

    reason: str = ""
    detail: str = ""

    def __bool__(self) -> bool:
        return bool(self.reason or self.detail)

    @property
    def messages(self) -> tuple[str, ...]:
        """The engine's messages; it writes them as one list in brackets, `[Cannot migrate VM. ..., ...]`."""
        listed = self.detail.strip()
        if listed.startswith("[") and listed.endswith("]"):
            listed = listed[1:-1]
        return tuple(text for text in re.split(r"(?<=[.:]), (?=[A-Z])", listed) if text)


def fault_of(body: bytes) -> Fault:
    """Read the fault of an answer, which may stand inside of an echoed action."""
    if not body[:_LONGEST_FAULT].lstrip().startswith(b"<") or len(body) > _LONGEST_FAULT:
        return Fault()
    root = etree.fromstring(body, etree.XMLParser(recover=True, resolve_entities=False, no_network=True))
    fault = None if root is None else root if root.tag == "fault" else root.find("fault")
    if fault is None:
        return Fault()
    return Fault(unbroken(fault.findtext("reason", "")), unbroken(fault.findtext("detail", "")))


def has_no_role(body: bytes) -> bool:
    """Whether the engine refuses a session since its user has no role: a page says so, no fault."""
    return b"is not authorized to perform login" in body[:_LONGEST_FAULT]


def failure_of(error: Exception, settings: EngineSettings, path: str) -> UserError:
    """Sort an error of the SDK's services, whether an answer or the lack of one."""
    code = getattr(error, "code", None)
    if code is None:
        return _failure_of_transport(error, settings)
    given: Any = getattr(error, "fault", None)
    fault = Fault() if given is None else Fault(unbroken(given.reason or ""), unbroken(given.detail or ""))
    return failure_of_answer(code, fault, settings, path)


def failure_of_answer(
    code: int, fault: Fault, settings: EngineSettings, path: str, body: bytes = b""
) -> UserError:
    """Sort an answer that is not what was asked for; the `body` matters where it has no fault.

    Of what it has not, the engine says so in XML, or with no word at all: a web server's own page is no
    engine's API, and says nothing of what there is.
    """
    path = path or "/"  # of the API
    if code == 404 and body.strip() and not fault:
        return EngineAway(
            f"{settings.address}: {path}: a web server answers 404 in place of the engine: it is starting, or"
            " correct url under [engine]; it ends in /ovirt-engine/api",
            request_sent=True,
        )
    said = f": {'; '.join(fault.messages) or fault.reason}" if fault else ""
    if code == 401 and has_no_role(body):
        return EngineSetupError(
            f"{settings.address}: {settings.username} has no role in the engine:"
            " give it the role ReadOnlyAdmin"
        )
    if code == 401:
        return EngineSetupError(
            f"{settings.address}: the engine refuses the session of {settings.username}{said}"
        )
    if code in AWAY_STATUSES:
        return EngineAway(
            f"{settings.address}: the engine is starting or stopping ({code})", request_sent=True
        )
    page = body[:_LONGEST_FAULT]
    # With 500 the engine erred as it read, for a list, what its user may not read.
    hidden = b"Problem following" in page and b"WebFaultException: HTTP 400" in page
    if (code == 400 and "insufficient permissions" in fault.detail) or (code == 500 and hidden):
        return EngineSetupError(
            f"{settings.address}: {settings.username} may not read {path}: give it the role ReadOnlyAdmin"
        )
    if code == 200 and not said:
        return no_engine(settings)
    return EngineFault(f"{settings.address}: {path}: the engine answers {code}{said}", code=code, fault=fault)


def _failure_of_transport(error: Exception, settings: EngineSettings) -> UserError:
    if isinstance(error, LogInRefused):
        return EngineSetupError(
            f"{settings.address}: the engine refuses {settings.username}: {error.said}."
            " Correct username or password_file under [engine]"
        )
    cause, text = error.cause if isinstance(error, Unanswered) else Cause.LOST, str(error)
    if cause is Cause.INTERRUPTED:
        return EngineAway(f"{settings.address}: the engine is not listened to: {text}", request_sent=True)
    if cause in (Cause.UNSENT, Cause.LOST):
        hint = _remedy(text, settings) if isinstance(error, Unanswered) else ""
        return EngineAway(
            f"{settings.address}: the engine does not answer: {text}{hint}", request_sent=cause is Cause.LOST
        )
    if cause is Cause.NO_ENGINE:
        return no_engine(settings)
    if cause is Cause.NO_AUTHORITY:
        return EngineSetupError(f"[engine] ca_file: {settings.ca_file}: holds no CA certificate ({text})")
    address = urlparse(settings.url or "")
    root = f"{address.scheme}://{address.netloc}"
    said = cause.value.format(text=text, host=address.hostname, root=root)
    return EngineSetupError(f"{settings.address}: {said}")


def _remedy(text: str, settings: EngineSettings) -> str:
    """What to look at, where a connection was refused or ended at once."""
    address = urlparse(settings.url or "")
    said = text.lower()
    if "refused" in said or "couldn't connect" in said or "could not connect" in said:
        port = address.port or (80 if address.scheme == "http" else 443)
        return f": is ovirt-engine running, and port {port} reachable?"
    if address.scheme == "http" and any(word in said for word in _ENDED_EARLY):
        return ": it may want https"
    return ""


def no_engine(settings: EngineSettings) -> EngineSetupError:
    """What answers lacks what every engine has, or is no answer of an engine's."""
    return EngineSetupError(
        f"{settings.address}: what answers there is not an oVirt engine's API: correct url under [engine];"
        " it ends in /ovirt-engine/api"
    )
