"""Serves what Prometheus and other monitors read of a process that has no HTTP server of its own."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from types import MappingProxyType
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    Metric,
    ProcessCollector,
    disable_created_metrics,
    make_wsgi_app,
)
from prometheus_client.exposition import ThreadingWSGIServer

from ovirt_service.addresses import split_address
from ovirt_service.errors import UserError

_log = logging.getLogger(__name__)

#: A WSGI application (PEP 3333).
Page = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def new_registry(prefix: str, engine: str = "") -> CollectorRegistry:
    """A registry with the figures of the process itself: its version, memory, processor time, open files.

    Nothing has a second series for when counting began: `process_start_time_seconds` does. With
    `engine`, which one of several a process is for, all of it has that as a label.
    """
    disable_created_metrics()
    registry = _OfEngine(engine) if engine else CollectorRegistry()
    ProcessCollector(registry=registry)
    build = Gauge(f"{prefix}_build_info", "The release that runs; always 1", ["version"], registry=registry)
    build.labels(version("ovirt-placement")).set(1)
    return registry


class _OfEngine(CollectorRegistry):
    def __init__(self, engine: str) -> None:
        super().__init__()
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        for family in super().collect():
            family.samples = [
                sample._replace(labels={"engine": self._engine, **sample.labels}) for sample in family.samples
            ]
            yield family


def serve(
    registry: CollectorRegistry,
    address: str,
    named: str,
    pages: Mapping[str, Page] = MappingProxyType({}),
) -> None:
    """Serve the page at HOST:PORT from a thread until the process ends; nowhere if the address is empty.

    Port 0 takes any free one; `pages` stand next to it, by their paths. Raises `UserError`, which calls the
    address as it is `named`.
    """
    if not address:
        return
    host, port = split_address(address, named)
    try:
        server = make_server(
            host, port, _choosing(make_wsgi_app(registry), pages), _server_for(host), handler_class=_Silent
        )
    except OSError as error:
        raise UserError(f"{named} {address!r}: {error.strerror}") from None
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    shown = f"[{host}]" if ":" in host else host
    _log.info("metrics at http://%s:%d/metrics", shown, server.server_port)


def _choosing(others: Page, pages: Mapping[str, Page]) -> Page:
    def choose(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        return pages.get(environ.get("PATH_INFO", ""), others)(environ, start_response)

    return choose


def _server_for(host: str) -> type[ThreadingWSGIServer]:
    class Server(ThreadingWSGIServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    return Server


class _Silent(WSGIRequestHandler):
    """Logs no requests: what watches a process asks every few seconds."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name for it
        pass
