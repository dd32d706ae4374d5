"""Who may call: addresses, users of this machine, host names, TLS; and the socket on which calls arrive."""

import errno
import ipaddress
import logging
import os
import pwd
import socket
import ssl
import struct
from collections.abc import Iterable

from ovirt_scheduler_proxy.settings import Server
from ovirt_service.errors import UserError
from ovirt_service.http.addresses import is_loopback, listening_socket, send_at_once, split_address
from ovirt_service.http.connection import Answer, Connection, Head, HttpError
from ovirt_service.http.listener import BACKLOG, Room
from ovirt_service.repetition import Said

#: Where systemd puts the first socket that it hands over: see sd_listen_fds(3).
_FIRST = 3


def open_socket(listen: str) -> socket.socket:
    """A listening socket at this address, which may come from systemd. Raises `UserError`."""
    host, port = split_address(listen)
    if os.environ.get("LISTEN_PID") == str(os.getpid()) and os.environ.get("LISTEN_FDS", "0") != "0":
        handed_over = _handed_over()
        at, at_port = handed_over.getsockname()[:2]
        # It must be where the configuration says, since that decides who may connect.
        if port not in {0, at_port} or is_loopback(host) != is_loopback(at):
            raise UserError(
                f"systemd hands over a socket at {at}:{at_port}, but [server] listen is {listen}:"
                " make ovirt-scheduler-proxy.socket agree with it, or disable that unit"
            )
        return handed_over
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return listening_socket(host, port, family, BACKLOG)
    except OSError as error:
        raise UserError(f"cannot listen on {listen}: {error.strerror or error}") from error


def _handed_over() -> socket.socket:
    if os.environ["LISTEN_FDS"] != "1":
        raise UserError("systemd hands over more than one socket; ovirt-scheduler-proxy.socket may name one")
    try:
        handed_over = socket.socket(fileno=_FIRST)
        listens = handed_over.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        raise UserError(f"what systemd hands over is no socket: {error.strerror}") from error
    if not listens or handed_over.family not in {socket.AF_INET, socket.AF_INET6}:
        raise UserError("what systemd hands over does not listen on TCP; see ovirt-scheduler-proxy.socket")
    handed_over.set_inheritable(False)  # plugins have no business with it
    send_at_once(handed_over)
    return handed_over


log = logging.getLogger(__name__)

_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST = 1
_ERROR = 2

_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBxI")
_NO_COOKIE = b"\xff" * 8
#: Of the answer: what comes before the user and the inode, and these two.
_REPORTED = struct.Struct("=4x48x12xII")


def ask_kernel() -> socket.socket | None:
    """A socket by which the kernel is asked whose a connection is; None where it answers no such question."""
    try:
        return socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, _SOCK_DIAG)
    except OSError as error:
        log.warning("the kernel does not show who owns a connection (%s): any local user may call", error)
        return None


def user_of(connection: socket.socket, kernel: socket.socket) -> int | None:
    """The uid of a local client; None where it is not known, as of one that has gone already."""
    try:
        kernel.send(_request(connection))
        answer = kernel.recv(4096)
    except OSError as error:
        if error.errno not in {errno.ENOTCONN, errno.ECONNRESET}:
            log.debug("whose a connection is cannot be found out: %s", error)
        return None
    _, kind, *_ = _HEADER.unpack_from(answer)
    if kind == _ERROR or len(answer) < _HEADER.size + _REPORTED.size:
        return None
    user, inode = _REPORTED.unpack_from(answer, _HEADER.size)
    return user if inode else None  # without one, the client has closed the socket


def _request(connection: socket.socket) -> bytes:
    """Asks for the client's end: its source is our peer."""
    here, there = connection.getsockname(), connection.getpeername()
    source, target = _plain(there[0]).packed, _plain(here[0]).packed
    family = socket.AF_INET if len(source) == 4 else socket.AF_INET6
    question = (
        _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF)
        + struct.pack("!HH", there[1], here[1])
        + source.ljust(16, b"\0")
        + target.ljust(16, b"\0")
        + struct.pack("=I", 0)
        + _NO_COOKIE
    )
    return _HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST, 0, 0) + question


def tls_context(server: Server) -> ssl.SSLContext | None:
    """The TLS side of the listener. Raises `UserError` for an open address without TLS and clients."""
    host, _ = split_address(server.listen)
    if not is_loopback(host) and not (server.tls_certificate and server.tls_key and server.allowed_clients):
        raise UserError(
            f"listen address {server.listen} is not this machine's loopback: [server] must then name"
            " tls_certificate, tls_key and allowed_clients"
        )
    if not server.tls_certificate and not server.tls_key:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(server.tls_certificate, server.tls_key or None)
    except (OSError, ssl.SSLError) as error:
        raise UserError(
            f"the TLS certificate {server.tls_certificate} and its key cannot be read: {error}"
        ) from error
    return context


#: The same user's refusal is logged again after this many seconds.
_QUIET_SECONDS = 600.0


class Gate:
    """Judges connections by their address and their user, and requests by their headers."""

    def __init__(self, server: Server) -> None:
        self._kernel = ask_kernel()
        self._users = frozenset(_uids(server.allowed_users))
        self._refused = Said(_QUIET_SECONDS)
        self._networks = [ipaddress.ip_network(client) for client in server.allowed_clients]
        host, _ = split_address(server.listen)
        own = f"[{host}]" if ":" in host else host
        self._names = frozenset(
            map(str.lower, ("localhost", "127.0.0.1", "[::1]", own, *server.allowed_hosts))
        )

    def admit(
        self, answer: Answer, longest_body: int, accepted: socket.socket, address: str, room: Room
    ) -> Connection | None:
        """The connection of a client, whose requests get this answer; None of one who may not connect."""
        client = _plain(address)
        if not client.is_loopback and not any(client in network for network in self._networks):
            log.warning("refused a connection from %s: it is not among allowed_clients", address)
            return None
        may_call = not client.is_loopback or self._may_call(accepted)
        return Connection(room, may_call, lambda head: self._check(head, may_call), answer, longest_body)

    def _may_call(self, connection: socket.socket) -> bool:
        """Whether this user of the machine may ask the units: that could keep the engine waiting."""
        if self._kernel is None:
            return True
        user = user_of(connection, self._kernel)
        if user in self._users:
            return True
        if user is not None and self._refused.is_news(user):
            log.warning("calls of uid %d are refused: [server] allowed_users does not name it", user)
        return False

    def close(self) -> None:
        if self._kernel is not None:
            self._kernel.close()

    def _check(self, head: Head, may_call: bool) -> None:
        """Refuse what a web page in a browser, or a user who may not call, has sent. Raises `HttpError`."""
        if not may_call and not asks_for_metrics(head):
            raise HttpError(403, "this user may not call; [server] allowed_users of the proxy names who may")
        host = head.headers.get("host")
        if host is None:
            if head.version == "HTTP/1.1":
                raise HttpError(400, "the request has no Host header")
        elif _without_port(host) not in self._names:
            raise HttpError(
                421, f"this is no server for {host[:80]!r}; [server] allowed_hosts names further ones"
            )
        if "origin" in head.headers:
            raise HttpError(403, "requests of web pages are not answered")


def _plain(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    client = ipaddress.ip_address(address.split("%")[0])
    return getattr(client, "ipv4_mapped", None) or client


def _uids(names: Iterable[str]) -> Iterable[int]:
    """Root, the proxy's own user, and those that are named."""
    yield from (0, os.geteuid())
    for name in names:
        try:
            yield int(name) if name.isdecimal() else pwd.getpwnam(name).pw_uid
        except KeyError:
            log.info("[server] allowed_users: there is no user %s on this machine", name)


def asks_for_metrics(head: Head) -> bool:
    """Whether a request is no call, but wants to know how the proxy does: all may, also who may not call."""
    return head.method in {"GET", "HEAD"} and head.path == "/metrics"


def check_content(head: Head) -> None:
    """A call must be XML: no form and no plain text, which browsers send across sites unasked."""
    kind = head.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind not in {"text/xml", "application/xml"}:
        raise HttpError(415, "the Content-Type of a call must be text/xml")


def _without_port(host: str) -> str:
    host = host.strip().lower()
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.split(":")[0]
