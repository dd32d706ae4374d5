"""Addresses to listen on, as configurations name them, and the sockets there."""

from __future__ import annotations

import socket

from ovirt_service.errors import UserError


def split_address(address: str, named: str = "listen address") -> tuple[str, int]:
    """HOST:PORT as its two parts; an IPv6 host stands in brackets.

    Raises `UserError`, which calls the address as it is `named`.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise UserError(f"{named} {address!r} is not HOST:PORT, as 127.0.0.1:18781 is")
    return host.removeprefix("[").removesuffix("]"), int(port)


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
