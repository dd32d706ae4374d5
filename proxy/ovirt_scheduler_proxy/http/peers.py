"""Whose a connection on this machine is: the kernel shows the user of the socket at its other end.

TCP has no SO_PEERCRED, and the engine speaks nothing else, so a Unix socket will not do. A rule of the packet
filter would live outside of the proxy. /proc/net/tcp lists every connection of the machine, even ended ones:
it grows with what a hostile user does. sock_diag(7) answers for one connection, within microseconds.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
import socket
import struct

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


class Peers:
    """Asks the kernel. Where it does not answer such questions, every local user counts as unknown."""

    def __init__(self) -> None:
        try:
            self._kernel: socket.socket | None = socket.socket(
                socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, _SOCK_DIAG
            )
        except OSError as error:
            log.warning("the kernel does not show who owns a connection (%s): any local user may call", error)
            self._kernel = None

    @property
    def known(self) -> bool:
        return self._kernel is not None

    def user(self, connection: socket.socket) -> int | None:
        """The uid of a local client; None where it is not known, as of one that has gone already."""
        if self._kernel is None:
            return None
        try:
            self._kernel.send(_request(connection))
            answer = self._kernel.recv(4096)
        except OSError as error:
            if error.errno not in {errno.ENOTCONN, errno.ECONNRESET}:
                log.debug("whose a connection is cannot be found out: %s", error)
            return None
        _, kind, *_ = _HEADER.unpack_from(answer)
        if kind == _ERROR or len(answer) < _HEADER.size + _REPORTED.size:
            return None
        user, inode = _REPORTED.unpack_from(answer, _HEADER.size)
        return user if inode else None  # without one, the socket is nobody's any more

    def close(self) -> None:
        if self._kernel is not None:
            self._kernel.close()


def _request(connection: socket.socket) -> bytes:
    """Asks for the client's end: its source is our peer."""
    here, there = connection.getsockname(), connection.getpeername()
    source, target = _packed(there[0]), _packed(here[0])
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


def _packed(address: str) -> bytes:
    ip = ipaddress.ip_address(address.split("%")[0])
    mapped = getattr(ip, "ipv4_mapped", None) or ip
    return bytes(mapped.packed)
