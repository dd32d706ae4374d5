"""Addresses to listen on."""

from __future__ import annotations

import pytest

from ovirt_service.addresses import split_address
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
