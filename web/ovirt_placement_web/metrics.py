"""What Prometheus can read of the page."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

from ovirt_service.metrics import new_registry

_PREFIX = "ovirt_placement_web"


class WebMetrics:
    """Counts of all engines that the page shows; each is moved where it happens."""

    def __init__(self) -> None:
        registry = self.registry = new_registry(_PREFIX)
        self.running = Gauge(
            f"{_PREFIX}_requests_running", "Requests under way by kind of work", ["kind"], registry=registry
        )
        self.waiting = Gauge(
            f"{_PREFIX}_requests_waiting", "Requests that wait for a place", ["kind"], registry=registry
        )
        self.refused = Counter(
            f"{_PREFIX}_requests_refused",
            "Requests refused since too many were under way: 429 of one session or address, 503 of all",
            ["kind", "status"],
            registry=registry,
        )
        self.connections = Gauge(f"{_PREFIX}_connections", "Connections that are open", registry=registry)
        self.closed = Counter(
            f"{_PREFIX}_connections_closed",
            "Connections closed since no whole request came in time, or their answer was not read",
            registry=registry,
        )
