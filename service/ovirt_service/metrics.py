"""Serves what Prometheus reads of a process that has no HTTP server of its own."""

from __future__ import annotations

import logging

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

from ovirt_service.addresses import split_address
from ovirt_service.errors import UserError

_log = logging.getLogger(__name__)


def new_registry() -> CollectorRegistry:
    """A registry that tells of the process itself already: its memory, processor time and open files."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    return registry


def serve(registry: CollectorRegistry, address: str, named: str) -> None:
    """Serve the page at HOST:PORT from a thread until the process ends; nowhere if the address is empty.

    Port 0 takes any free one. Raises `UserError`, which calls the address as it is `named`.
    """
    if not address:
        return
    host, port = split_address(address, named)
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        raise UserError(f"{named} {address!r}: {error.strerror}") from None
    shown = f"[{host}]" if ":" in host else host
    _log.info("metrics at http://%s:%d/metrics", shown, server.server_port)
