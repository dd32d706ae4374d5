"""Addresses as configurations name them: how they are printed, and the sockets to listen on."""

import contextlib
import ipaddress
import re
import socket
import ssl
from urllib.parse import urlsplit

from ovirt_service.errors import UserError

#: Up to the last @: a password may hold whatever it likes.
_SIGNED = re.compile(r"//.*@")


def shown(url: str) -> str:
    """A URL as logs and messages may have it: scheme, host and port alone.

    User and password are secret, and a path, a query or a fragment may be: those of many receivers are.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host:
        return "an address that is none"
    named = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{named}{'' if port is None else f':{port}'}"


def redacted(text: str, url: str = "") -> str:
    """What another says of a URL, without what `shown` leaves out of it."""
    text = _SIGNED.sub("//", text)
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        for part in (parts.path.strip("/"), parts.query, parts.fragment, parts.username, parts.password):
            text = text.replace(part, "***") if part else text
    return text


def any_certificate() -> ssl.SSLContext:
    """For questions to a proxy, which is known by its address: the engine must trust it, by another name.

    Nothing that is secret goes there, and what comes back is only reported.
    """
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def split_address(address: str, named: str = "listen address") -> tuple[str, int]:
    """HOST:PORT as its two parts; an IPv6 host stands in brackets.

    Raises `UserError`, which calls the address as it is `named`.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise UserError(f"{named} {address!r} is not HOST:PORT, as 127.0.0.1:18781 is")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether a host, by name or address, is this machine as it reaches itself alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listening_socket(host: str, port: int, family: int, backlog: int) -> socket.socket:
    """A socket of this family that listens there, and whose connections send at once; raises `OSError`."""
    found = socket.create_server((host, port), family=family, backlog=backlog)
    send_at_once(found)
    return found


def send_at_once(listening: socket.socket) -> None:
    """Connections inherit this; else the end of an answer waits, 40 ms mostly, for an acknowledgement.

    asyncio sets it for sockets that it has opened itself alone.
    """
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
