"""Addresses to listen on."""

from __future__ import annotations

import socket

import pytest

from ovirt_service.addresses import listening_socket, split_address
from ovirt_service.errors import UserError


@pytest.mark.parametrize(
    ("address", "parts"),
    [("127.0.0.1:80", ("127.0.0.1", 80)), ("[::1]:0", ("::1", 0)), ("localhost:65535", ("localhost", 65535))],
)
def test_host_and_port(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize("address", ["", "127.0.0.1", ":80", "host:", "host:x", "host:70000"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(UserError, match=r"^\[part\] listen '.*' is not HOST:PORT"):
        split_address(address, "[part] listen")


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_connections_send_at_once(family: int, host: str) -> None:
    with listening_socket(host, 0, family, backlog=1) as listening:
        client = socket.create_connection(listening.getsockname()[:2])
        accepted, _ = listening.accept()
        with client, accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
