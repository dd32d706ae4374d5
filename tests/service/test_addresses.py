"""Addresses to listen on, and how those of others are printed."""

import socket

import pytest

from ovirt_service.errors import UserError
from ovirt_service.http.addresses import listening_socket, redacted, shown, split_address


@pytest.mark.parametrize(
    ("address", "parts"),
    [("127.0.0.1:80", ("127.0.0.1", 80)), ("[::1]:0", ("::1", 0)), ("localhost:65535", ("localhost", 65535))],
)
def test_host_and_port(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize("address", ["", "127.0.0.1", ":80", "host:", "host:x", "host:65536", "host:70000"])
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


@pytest.mark.parametrize(
    ("url", "printed"),
    [
        (
            "https://me:geheim@hooks.example:8443/services/geheim?key=geheim#geheim",
            "https://hooks.example:8443",
        ),
        ("http://[::1]:9093/api/v2/alerts", "http://[::1]:9093"),
        ("postgresql+psycopg://me:geheim@/placement", "an address that is none"),
        ("https://geheim@host:port/", "an address that is none"),
        ("geheim", "an address that is none"),
    ],
)
def test_an_address_is_printed_without_what_is_secret(url: str, printed: str) -> None:
    assert shown(url) == printed


@pytest.mark.parametrize(
    "said",
    [
        "Cannot POST /services/geheim",
        "Failed to parse: http://me:ge heim/geheim@proxy:3128",
        "<ProtocolError for me:geheim@hooks.example/services/geheim: 404 Not Found>",
    ],
)
def test_what_others_say_of_an_address_is_printed_without_it(said: str) -> None:
    assert "geheim" not in redacted(said, "https://me:geheim@hooks.example/services/geheim")
