"""Serves the page by uvicorn, until SIGTERM."""

from __future__ import annotations

import socket
import ssl

import uvicorn

from ovirt_placement.config import Config
from ovirt_placement_web import audit
from ovirt_placement_web.application import application
from ovirt_placement_web.settings import Listening, WebSettings, listening
from ovirt_service.addresses import listening_socket
from ovirt_service.errors import UserError
from ovirt_service.systemd import Notifier

#: Open event streams would keep it from stopping.
_STOP_SECONDS = 2
_MOST_CONNECTIONS = 2000
#: Connections that wait while the page is busy.
_BACKLOG = 1024


def run(config: Config) -> None:
    """Serve until SIGTERM; raises `UserError` if the configuration is at fault."""
    settings = config.section("web", WebSettings)
    at = listening(settings, config.source)
    audit.open_log(settings.audit_log)
    with _bound(at, f"{config.source}: [web] listen: {settings.listen}") as listener:
        at = at._replace(port=listener.getsockname()[1])
        _Server(_configured(config, settings, at), at, settings.root).run(sockets=[listener])


def _bound(at: Listening, named: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
    try:
        return listening_socket(at.host, at.port, family, _BACKLOG)
    except OSError as error:
        raise UserError(f"{named}: {error.strerror or error}") from None


def _configured(config: Config, settings: WebSettings, at: Listening) -> uvicorn.Config:
    found = uvicorn.Config(
        application(config, settings, at),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=30,
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


class _Server(uvicorn.Server):
    """Says when it serves, to its starter."""

    def __init__(self, config: uvicorn.Config, at: Listening, root: str) -> None:
        super().__init__(config)
        self._at = at
        self._root = root

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            scheme = "https" if self._at.tls else "http"
            host = f"[{self._at.host}]" if ":" in self._at.host else self._at.host
            print(f"ovirt-placement-web: {scheme}://{host}:{self._at.port}{self._root}/", flush=True)
            Notifier().ready()
