"""Serves the page by uvicorn, until SIGTERM."""

import asyncio
import socket
import ssl
import sys
import time
from typing import Any

import uvicorn
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
    with _bound(at, f"{config.source}: [web] listen: {settings.listen}") as listener:
        at = at._replace(port=listener.getsockname()[1])
        server = _Server(_configured(config, settings, at, metrics), at, settings.root, metrics)
        server.run(sockets=[listener])


def _bound(at: Listening, named: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
    try:
        return listening_socket(at.host, at.port, family, BACKLOG)
    except OSError as error:
        raise UserError(f"{named}: {error.strerror or error}") from None


def _configured(config: Config, settings: WebSettings, at: Listening, metrics: WebMetrics) -> uvicorn.Config:
    found = uvicorn.Config(
        application(config, settings, at, metrics),
        log_config=None,
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
        #: Whether a part of a request has come that is not answered yet.
        self._begun = False
        self.has_called = False
        self.waiting_since: float | None = time.monotonic()

    @property
    def idle(self) -> bool:
        return not self._begun and not self.unsent

    @property
    def unsent(self) -> int:
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

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
            self.waiting_since = time.monotonic()
        self._begun = True
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        self._begun, self.has_called = bool(self.conn.trailing_data[0]), True
        self.waiting_since = time.monotonic()
        super().on_response_complete()
        self._follow()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.waiting_since = time.monotonic()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._follow()

    def end(self) -> None:
        self.shutdown()

    def abort(self) -> None:
        self.transport.abort()

    def _follow(self) -> None:
        """While a whole request is being answered, its client waits for us."""
        cycle = self.cycle
        if cycle is not None and not (cycle.more_body or cycle.response_complete or self.flow.write_paused):
            self._begun, self.waiting_since = True, None


class _Server(uvicorn.Server):
    """Says when it serves, to its starter; who is silent makes room for others."""

    def __init__(self, config: uvicorn.Config, at: Listening, root: str, metrics: WebMetrics) -> None:
        super().__init__(config)
        self._at = at
        self._root = root
        self._metrics = metrics
        self._listener: Listener | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve the one socket; as the base does but for who accepts connections."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(1)
        [listening] = sockets or []
        most = possible_connections(_MOST_CONNECTIONS, _OTHER_DESCRIPTORS)
        limits = Limits(most, _IDLE_SECONDS, _REQUEST_SECONDS, _ANSWER_SECONDS)
        listener = Listener(listening, limits, self._admit, self._metrics.closed.inc)
        listener.start(self.config.ssl)
        self._listener, self.servers, self.started = listener, [], True
        scheme = "https" if self._at.tls else "http"
        host = f"[{self._at.host}]" if ":" in self._at.host else self._at.host
        print(f"ovirt-placement-web: {scheme}://{host}:{self._at.port}{self._root}/", flush=True)
        Notifier().ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._listener is not None:
            self._listener.stop()
        await super().shutdown()

    def _admit(self, accepted: socket.socket, address: str, room: Room) -> _Client:
        return _Client(
            room,
            self._metrics.connections,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
