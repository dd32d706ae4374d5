"""Opens the socket that the proxy listens on, or takes the one that systemd holds open across restarts."""

from __future__ import annotations

import os
import socket

from ovirt_service.addresses import listening_socket, send_at_once, split_address
from ovirt_service.errors import UserError
from ovirt_service.http.listener import BACKLOG

from .access import is_loopback

#: Where systemd puts the first socket that it hands over: see sd_listen_fds(3).
_FIRST = 3


def open_socket(listen: str) -> socket.socket:
    """A listening socket at this address. Raises `UserError`."""
    handed_over = _from_systemd()
    if handed_over is not None:
        _check(handed_over, listen)
        send_at_once(handed_over)
        return handed_over
    host, port = split_address(listen)
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return listening_socket(host, port, family, BACKLOG)
    except OSError as error:
        raise UserError(f"cannot listen on {listen}: {error.strerror or error}") from error


def _from_systemd() -> socket.socket | None:
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS", "0") == "0":
        return None
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
    return handed_over


def _check(handed_over: socket.socket, listen: str) -> None:
    """It must be where the configuration says, since that decides who may connect."""
    host, port = split_address(listen)
    at, at_port = handed_over.getsockname()[:2]
    if (at_port != port and port != 0) or is_loopback(host) != is_loopback(at):
        raise UserError(
            f"systemd hands over a socket at {at}:{at_port}, but [server] listen is {listen}:"
            " make ovirt-scheduler-proxy.socket agree with it, or disable that unit"
        )
