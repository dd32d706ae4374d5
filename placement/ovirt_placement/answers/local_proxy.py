"""The scheduler proxy of this machine: where its configuration says that it listens, and what it offers."""

from __future__ import annotations

import http.client
import xmlrpc.client
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

from ovirt_placement.config import DEFAULT_ENGINE
from ovirt_placement.model.record import Record
from ovirt_placement.rules.rule import UnitKind
from ovirt_service import toml_file

#: Where proxies have their configuration: one an engine.
PROXY_DIRECTORY = Path("/etc/ovirt-scheduler-proxy")

#: Where a proxy listens that does not say where.
_LISTEN = "127.0.0.1:18781"
_PATIENCE_SECONDS = 5.0
_KINDS = {"filters": UnitKind.FILTER, "scores": UnitKind.WEIGHT, "balance": UnitKind.BALANCE}

#: A unit by type and name.
Key = tuple[str, str]


class ProxyRecord(Record, frozen=True, omit_defaults=False):
    """A scheduler proxy that was asked for its units."""

    url: str
    units: tuple[str, ...]
    #: Why it does not answer.
    error: str | None


def configuration_of(engine: str) -> Path:
    """The configuration of the proxy of an engine, which need not exist."""
    name = "ovirt-scheduler-proxy" if engine == DEFAULT_ENGINE else engine
    return PROXY_DIRECTORY / f"{name}.toml"


def url_of(engine: str) -> str | None:
    """Where the proxy of an engine listens; None if this machine has none.

    Raises `UserError` if its configuration cannot be read.
    """
    file = configuration_of(engine)
    if not file.exists():
        return None
    section: Any = toml_file.read(file).get("server")
    server = section if isinstance(section, dict) else {}
    scheme = "https" if server.get("tls_certificate") else "http"
    return f"{scheme}://{server.get('listen') or _LISTEN}/"


def asked(url: str) -> ProxyRecord:
    """Ask a proxy for its units, as the engine does when it starts."""
    try:
        found = discover(url)
    except (OSError, xmlrpc.client.Error, ExpatError, ValueError) as error:
        return ProxyRecord(url, (), str(error))
    return ProxyRecord(url, tuple(name for _, name in found), None)


def discover(url: str) -> dict[Key, dict[str, str]]:
    """Ask a proxy for its units and their properties.

    Raises OSError, `xmlrpc.client.Error` or ExpatError if it does not answer, ValueError if not as it must.
    """
    with xmlrpc.client.ServerProxy(url, transport=_Transport()) as proxy:
        answer: Any = proxy.discover()
    if not isinstance(answer, dict) or set(answer) != set(_KINDS):
        raise ValueError("its discover does not answer filters, scores and balance")
    return {
        (_KINDS[key], name): _properties(str(described[1]))
        for key, found in answer.items()
        for name, described in found.items()
    }


class _Transport(xmlrpc.client.Transport):
    """Waits for an answer, but not for ever."""

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        connection = super().make_connection(host)
        connection.timeout = _PATIENCE_SECONDS
        return connection


def _properties(text: str) -> dict[str, str]:
    parts = (part.strip().partition("=") for part in text.split(";") if part.strip())
    return {name: regex for name, _, regex in parts}
