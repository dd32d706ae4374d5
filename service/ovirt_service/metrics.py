"""Serves what Prometheus and other monitors read of a process that has no HTTP server of its own."""

import asyncio
import logging
import os
import queue
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from types import MappingProxyType, SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder

from ovirt_service.errors import UserError
from ovirt_service.http.addresses import listening_socket, split_address
from ovirt_service.http.connection import Answer, Connection, Head, HttpError, HttpRequest, Respond, Response
from ovirt_service.http.listener import BACKLOG, Limits, Listener, Room
from ovirt_service.process import BackgroundThread, at_end

_log = logging.getLogger(__name__)

#: What watches a process asks every few seconds, on a connection or two.
_LIMITS = Limits(connections=256, idle_seconds=60.0, request_seconds=5.0, answer_seconds=5.0)

#: What is shown at a path.
Page = Callable[[], Response]


class Instruments:
    """The figures that a process keeps, in one registry, each with the process's prefix before its name.

    With those of the process itself: version, memory, processor time, open files. Nothing has a second series
    for when counting began: `process_start_time_seconds` does.
    """

    def __init__(self, prefix: str, engine: str = "") -> None:
        """With `engine`, which one of several a process is for, all of it has that as a label."""
        disable_created_metrics()
        self._prefix = prefix
        self.registry = _OfEngine(engine) if engine else CollectorRegistry()
        ProcessCollector(registry=self.registry)
        build = self.gauge("build_info", "The release that runs; always 1", "version")
        build.labels(version("ovirt-placement")).set(1)

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{self._prefix}_{name}", text, labels, registry=self.registry)

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"{self._prefix}_{name}", text, labels, registry=self.registry)

    def histogram(self, name: str, text: str, *labels: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(f"{self._prefix}_{name}", text, labels, buckets=buckets, registry=self.registry)


class _OfEngine(CollectorRegistry):
    def __init__(self, engine: str) -> None:
        super().__init__()
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        return self._named(super().collect())

    def restricted_registry(self, names: Iterable[str]) -> Any:
        found = super().restricted_registry(names)
        return SimpleNamespace(collect=lambda: self._named(found.collect()))

    def _named(self, families: Iterable[Metric]) -> Iterator[Metric]:
        for family in families:
            named = {"engine": self._engine}
            family.samples = [one._replace(labels=named | one.labels) for one in family.samples]
            yield family


def serve(
    registry: CollectorRegistry, address: str, named: str, pages: Mapping[str, Page] = MappingProxyType({})
) -> None:
    """Serve `/metrics` at HOST:PORT from a thread until the command ends; nowhere if the address is empty.

    Port 0 takes any free one; `pages` stand next to it, by their paths. Raises `UserError`, which calls the
    address as it is `named`.
    """
    if not address:
        return
    host, port = split_address(address, named)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = listening_socket(host, port, family, BACKLOG)
    except OSError as error:
        raise UserError(f"{named} {address!r}: {os.strerror(error.errno or 0)}") from None
    answer = partial(_answer, registry, pages)
    stops: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
    BackgroundThread(_run, (listening, answer, stops.put), name="metrics").start()
    at_end(lambda: stops.get()())
    shown = f"[{host}]" if ":" in host else host
    _log.info("metrics at http://%s:%d/metrics", shown, listening.getsockname()[1])


def _run(listening: socket.socket, answer: Answer, started: Callable[[Callable[[], object]], object]) -> None:
    """Serve; `started` is given what ends it."""

    async def run() -> None:
        listener, stopped = Listener(listening, _LIMITS, admit, lambda: None), asyncio.Event()
        listener.start(None)
        started(partial(asyncio.get_running_loop().call_soon_threadsafe, stopped.set))
        await stopped.wait()
        await listener.close(0.0)

    def admit(accepted: socket.socket, address: str, room: Room) -> Connection:
        return Connection(room, True, check, answer, 0)

    def check(head: Head) -> None:
        if head.method not in {"GET", "HEAD"}:
            raise HttpError(405, "this address takes a GET")

    asyncio.run(run())


def _answer(
    registry: CollectorRegistry, pages: Mapping[str, Page], request: HttpRequest, respond: Respond
) -> None:
    head = request.head
    path, _, query = head.path.partition("?")
    if path in pages:
        respond(pages[path]())
        return
    if path not in {"/", "/metrics"}:
        raise HttpError(404, "the metrics are at /metrics")
    encode, kind = choose_encoder(head.headers.get("accept", ""))
    names = parse_qs(query).get("name[]")
    respond(Response(encode(registry.restricted_registry(names) if names else registry), kind))
