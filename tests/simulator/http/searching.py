"""Searches as clients send them."""

from __future__ import annotations

from urllib.parse import quote

from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import Reply, request


def ask(server: Server, collection: str, search: str, **more: str) -> Reply:
    parameters = "".join(f"&{name}={value}" for name, value in more.items())
    return request(f"{server.api_url}/{collection}?search={quote(search)}{parameters}")


def ids(server: Server, collection: str, search: str, **more: str) -> list[str]:
    reply = ask(server, collection, search, **more)
    assert reply.status == 200
    return [item.get("id", "") for item in reply.xml]
