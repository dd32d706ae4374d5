"""Plain HTTP requests, for what the SDK hides: statuses, headers, and bytes as they stand."""

from base64 import b64encode
from collections.abc import Callable
from http.client import HTTPConnection, HTTPResponse
from typing import NamedTuple
from urllib.parse import urlsplit

from lxml import etree


class Reply(NamedTuple):
    status: int
    phrase: str
    headers: dict[str, str]
    body: bytes

    @property
    def xml(self) -> etree._Element:
        return etree.fromstring(self.body)


#: Sends a request to the API by its path there, as `request` does.
Api = Callable[..., Reply]


def request(
    url: str,
    method: str = "GET",
    body: bytes | str | None = None,
    *,
    user: str | None = "admin@internal:password",
    headers: dict[str, str] | None = None,
) -> Reply:
    """Send one request, as `user` if any; names of the reply's headers are in lower case."""
    parts = urlsplit(url)
    sent = dict(headers or {})
    if user is not None:
        sent["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body, sent)
        response: HTTPResponse = connection.getresponse()
        lowered = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, response.reason, lowered, response.read())
    finally:
        connection.close()
