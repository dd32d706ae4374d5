"""Who may speak to the proxy: some users of this machine, unless TLS and a list of clients open it."""

from __future__ import annotations

import ipaddress
import logging
import os
import pwd
import socket
import ssl
from collections.abc import Iterable

from ovirt_service.addresses import split_address
from ovirt_service.errors import UserError
from ovirt_service.http.connection import Answer
from ovirt_service.http.request import Head, HttpError
from ovirt_service.http.room import Room, Standing
from ovirt_service.saying import Said

from ..settings import Server
from .peers import Peers

log = logging.getLogger(__name__)

_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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


#: Who may read them need not be who may call.
METRICS = "/metrics"

#: The same user's refusal is logged again after this many seconds.
_QUIET_SECONDS = 600.0


class Gate:
    """Judges connections by their address and their user, and requests by their headers."""

    def __init__(self, server: Server) -> None:
        self._peers = Peers()
        self._users = frozenset(_uids(server.allowed_users))
        self._refused = Said(_QUIET_SECONDS)
        self._networks = [ipaddress.ip_network(client) for client in server.allowed_clients]
        host, _ = split_address(server.listen)
        self._names = frozenset(name.lower() for name in self._host_names(host, server.allowed_hosts))

    def admit(
        self, answer: Answer, longest_body: int, accepted: socket.socket, address: str, room: Room
    ) -> Standing | None:
        """The connection of a client, whose requests get this answer; None of one who may not connect."""
        client = _plain(address)
        if not client.is_loopback and not any(client in network for network in self._networks):
            log.warning("refused a connection from %s: it is not among allowed_clients", address)
            return None
        may_call = self.may_call(accepted, address)
        return Standing(room, may_call, lambda head: self.check(head, may_call), answer, longest_body)

    def may_call(self, connection: socket.socket, address: str) -> bool:
        """Whether this client may ask the units: any that was admitted from afar, and some of this machine.

        Each call makes the units work, and so could keep the engine waiting.
        """
        if not _plain(address).is_loopback or not self._peers.known:
            return True
        user = self._peers.user(connection)
        if user in self._users:
            return True
        if user is not None and self._refused.is_news(user):
            log.warning("calls of uid %d are refused: [server] allowed_users does not name it", user)
        return False

    def close(self) -> None:
        self._peers.close()

    def check(self, head: Head, may_call: bool) -> None:
        """Refuse what a web page in somebody's browser, or a stranger, has sent. Raises `HttpError`."""
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

    @staticmethod
    def _host_names(host: str, further: Iterable[str]) -> Iterable[str]:
        yield from _LOCAL_NAMES
        yield f"[{host}]" if ":" in host else host
        yield from further


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
    """Whether a request is no call, but wants to know how the proxy does."""
    return head.method in {"GET", "HEAD"} and head.path == METRICS


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
