"""Addresses to listen on, as configurations name them."""

from __future__ import annotations

from ovirt_service.errors import UserError


def split_address(address: str, named: str = "listen address") -> tuple[str, int]:
    """HOST:PORT as its two parts; an IPv6 host stands in brackets.

    Raises `UserError`, which calls the address as it is `named`.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise UserError(f"{named} {address!r} is not HOST:PORT, as 127.0.0.1:18781 is")
    return host.removeprefix("[").removesuffix("]"), int(port)
