"""Serves the page by uvicorn, until SIGTERM."""

import asyncio
import socket
import ssl
import sys
import time
from typing import Any

import uvicorn
from h11 import IDLE
from prometheus_client import Gauge
from uvicorn.protocols.http.h11_impl import H11Protocol

from ovirt_placement.config import Config
from ovirt_placement_web.application import application
from ovirt_placement_web.bounds import WebMetrics
from ovirt_placement_web.log_in import AUDIT_LOG
from ovirt_placement_web.settings import Listening, WebSettings, listening
from ovirt_service.daemon import Notifier
from ovirt_service.errors import UserError
from ovirt_service.http.addresses import listening_socket
from ovirt_service.http.listener import BACKLOG, Limits, Listener, Room, possible_connections
from ovirt_service.metrics import serve

#: Open event streams would keep it from stopping.
_STOP_SECONDS = 2
#: Requests have bounds of their own, so that connections need only fit into memory.
_MOST_CONNECTIONS = 4096
#: Descriptors for all else: the engine, the store, what the inventory publishes, plans.
_OTHER_DESCRIPTORS = 200
#: Between two requests; for a request to come; and for an answer to be read.
_IDLE_SECONDS = 30.0
_REQUEST_SECONDS = 10.0
_ANSWER_SECONDS = 60.0


def run(config: Config) -> None:
    """Serve until SIGTERM; raises `UserError` if the configuration is at fault."""
    settings = config.section("web", WebSettings)
    at = listening(settings, config.source)
    AUDIT_LOG.open(settings.audit_log)
    metrics = WebMetrics()
    serve(metrics.registry, settings.metrics, f"{config.source}: [web] metrics")
    family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
    try:
        listener = listening_socket(at.host, at.port, family, BACKLOG)
    except OSError as error:
        named = f"{config.source}: [web] listen: {settings.listen}"
        raise UserError(f"{named}: {error.strerror or error}") from None
    with listener:
        at = at._replace(port=listener.getsockname()[1])
        server = _Server(_configured(config, settings, at, metrics), f"{at.url}{settings.root}/", metrics)
        server.run(sockets=[listener])


def _configured(config: Config, settings: WebSettings, at: Listening, metrics: WebMetrics) -> uvicorn.Config:
    found = uvicorn.Config(
        application(config, settings, at, metrics),
        log_config=None,
        log_level="error",  # of what is no request it would say so each time, however many come
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        timeout_keep_alive=int(_IDLE_SECONDS),
        timeout_graceful_shutdown=_STOP_SECONDS,
        h11_max_incomplete_event_size=32768,
        http="h11",
        ws="none",
        loop="asyncio",
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
    )
    try:
        found.load()
    except (OSError, ssl.SSLError) as error:
        raise UserError(f"{config.source}: [web] certificate, key: {error}") from None
    if found.ssl is not None:
        found.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
    return found


class _Client(H11Protocol):
    """A connection of uvicorn's that takes room until its client has had its time."""

    def __init__(self, room: Room, connections: Gauge, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._room = room
        self._open = connections
        self._since = time.monotonic()
        self.has_called = False

    @property
    def idle(self) -> bool:
        """Whether nothing of a request has come that is not answered yet, and all of the answer is gone."""
        conn = self.conn
        return conn.our_state is conn.their_state is IDLE and not conn.trailing_data[0] and not self.unsent

    @property
    def unsent(self) -> int:
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    @property
    def waiting_since(self) -> float | None:
        """While a whole request is being answered, its client waits for us."""
        cycle = self.cycle
        begun = cycle is not None and not (cycle.more_body or cycle.response_complete)
        return None if begun and not self.flow.write_paused else self._since

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._open.inc()
        self._room.add(self, True)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._open.dec()
        self._room.remove(self)

    def data_received(self, data: bytes) -> None:
        if self.idle:
            self._since = time.monotonic()
        super().data_received(data)

    def on_response_complete(self) -> None:
        self._since, self.has_called = time.monotonic(), True
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._since = time.monotonic()

    def end(self) -> None:
        self.shutdown()

    def abort(self) -> None:
        self.transport.abort()


class _Server(uvicorn.Server):
    """Says when it serves, to its starter; who is silent makes room for others."""

    def __init__(self, config: uvicorn.Config, url: str, metrics: WebMetrics) -> None:
        super().__init__(config)
        self._url, self._metrics = url, metrics

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve the one socket; as the base does but for who accepts connections."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(1)
        [listening] = sockets or []
        most = possible_connections(_MOST_CONNECTIONS, _OTHER_DESCRIPTORS)
        limits = Limits(most, _IDLE_SECONDS, _REQUEST_SECONDS, _ANSWER_SECONDS)
        self._listener = Listener(listening, limits, self._admit, self._metrics.closed.inc)
        self._listener.start(self.config.ssl)
        self.servers, self.started = [], True
        print(f"ovirt-placement-web: {self._url}", flush=True)
        Notifier().ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._listener.stop()
        await super().shutdown()

    def _admit(self, accepted: socket.socket, address: str, room: Room) -> _Client:
        shared: dict[str, Any] = {"server_state": self.server_state, "app_state": self.lifespan.state}
        return _Client(room, self._metrics.connections, config=self.config, **shared)
