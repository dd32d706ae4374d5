"""What Prometheus can read of the page."""

from __future__ import annotations

from ovirt_service.metrics import Instruments


class WebMetrics(Instruments):
    """Counts of all engines that the page shows; each is moved where it happens."""

    def __init__(self) -> None:
        super().__init__("ovirt_placement_web")
        self.running = self.gauge("requests_running", "Requests under way by kind of work", "kind")
        self.waiting = self.gauge("requests_waiting", "Requests that wait for a place", "kind")
        self.refused = self.counter(
            "requests_refused",
            "Requests refused since too many were under way: 429 of one session or address, 503 of all",
            "kind",
            "status",
        )
        self.connections = self.gauge("connections", "Connections that are open")
        self.closed = self.counter(
            "connections_closed",
            "Connections closed since no whole request came in time, or their answer was not read",
        )
