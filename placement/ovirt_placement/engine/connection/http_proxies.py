"""Which HTTP proxy stands between us and the engine: as curl reads the environment, which sends all else.

requests reads HTTP_PROXY as well, and NO_PROXY otherwise: the log-in would go another way than what follows.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def proxy_of(url: str, environment: Mapping[str, str]) -> str | None:
    """The URL of the proxy for this one; None where there is none."""
    parts = urlsplit(url)
    proxy = _first(environment, *_variables(parts.scheme))
    if not proxy or _is_left_out(parts.hostname or "", _first(environment, "no_proxy", "NO_PROXY")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _variables(scheme: str) -> tuple[str, ...]:
    """Those that count, the first first; HTTP_PROXY does not: a client of a web server's CGI could set it."""
    own = ("http_proxy",) if scheme == "http" else (f"{scheme}_proxy", f"{scheme}_proxy".upper())
    return (*own, "all_proxy", "ALL_PROXY")


def _first(environment: Mapping[str, str], *names: str) -> str:
    """What the first of these says; an empty one says nothing."""
    return next((value for name in names if (value := environment.get(name))), "")


def _is_left_out(host: str, listed: str) -> bool:
    if listed == "*":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return any(f".{host}".endswith(f".{domain}") for domain in _domains(listed))
    return any(address in network for network in _networks(listed))


def _domains(listed: str) -> Iterator[str]:
    for word in listed.lower().split(","):
        if domain := word.strip().strip("."):
            yield domain


def _networks(listed: str) -> Iterator[_Network]:
    for word in listed.split(","):
        with contextlib.suppress(ValueError):
            yield ipaddress.ip_network(word.strip(), strict=False)
