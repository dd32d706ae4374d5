"""The section `[web]` of the configuration: where the page is, who may frame it, its limits and engines."""

import re
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from ovirt_placement import config as configuration
from ovirt_placement.config import Config
from ovirt_service.errors import UserError
from ovirt_service.http.addresses import is_loopback, split_address

_ORIGIN = re.compile(r"https?://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?")

Count = Annotated[int, Meta(ge=1)]

#: How long a person waits for the engine, where an act needs its answer.
ENGINE_SECONDS = 10.0


class WebSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    #: HOST:PORT; other machines need `certificate` and `key`.
    listen: str = "127.0.0.1:8446"
    #: The path of the page.
    root: Annotated[str, Meta(pattern=r"^(/[A-Za-z0-9._-]+)+\Z")] = "/ovirt-placement"
    #: Addresses of the page for browsers, https://HOST[:PORT]; empty: as `listen` says.
    origins: tuple[str, ...] = ()
    #: The TLS certificate with its chain, and its key, in PEM.
    certificate: Path | None = None
    key: Path | None = None
    #: Web servers whose X-Forwarded-* headers count.
    trusted_proxies: tuple[str, ...] = ()
    #: How often the tokens of sessions are checked.
    validate_seconds: Annotated[float, Meta(gt=0, le=60)] = 60.0
    #: Event streams of one session, and in all.
    streams_per_session: Count = 20
    streams: Count = 500
    #: A file that gets each log-in and act as a line of JSON; empty: none.
    audit_log: str = ""
    #: HOST:PORT for Prometheus; empty: none.
    metrics: str = ""
    #: Configurations of further engines that the page shows.
    engines: tuple[Path, ...] = ()
    #: The proxy's record of decisions; empty: as the proxy is configured.
    decisions: str = ""


class Listening(NamedTuple):
    host: str
    port: int
    tls: bool

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


def listening(settings: WebSettings, source: str) -> Listening:
    """Where to listen; raises `UserError` if others than this machine would be served without TLS."""
    host, port = split_address(settings.listen, f"{source}: [web] listen:")
    tls = settings.certificate is not None
    if tls != (settings.key is not None):
        raise UserError(f"{source}: [web] certificate and key belong together: set both or none")
    if not is_loopback(host) and not tls:
        raise UserError(
            f"{source}: [web] listen: {settings.listen} serves other machines: set certificate and key, or"
            " listen at 127.0.0.1 behind a web server (docs/web.md)"
        )
    return Listening(host, port, tls)


def origins(settings: WebSettings, at: Listening, source: str) -> tuple[str, ...]:
    """As browsers name the page; raises `UserError` for what is no origin."""
    for origin in settings.origins:
        if not _ORIGIN.fullmatch(origin):
            raise UserError(f'{source}: [web] origins: "{origin}": write https://HOST or https://HOST:PORT')
    if settings.origins:
        return tuple(map(_as_sent, settings.origins))
    if at.host in ("0.0.0.0", "::"):  # noqa: S104 - it is refused
        raise UserError(f"{source}: [web] origins: set https://HOST:{at.port}: no browser asks for {at.host}")
    names = (at.host, "localhost") if is_loopback(at.host) else (at.host,)
    return tuple(_as_sent(at._replace(host=name).url) for name in names)


def _as_sent(origin: str) -> str:
    """As browsers send it: in small letters, and without the port that its scheme has anyway."""
    origin = origin.lower()
    return origin.removesuffix(":443" if origin.startswith("https:") else ":80")


def engine_origin(url: str | None) -> str:
    """The origin of the engine's portal, which may frame the page; 'none' without an engine."""
    parts = urlsplit(url or "")
    return _as_sent(f"{parts.scheme}://{parts.netloc}") if parts.netloc else "'none'"


# -- Several engines on one page: each below its own path, with log-ins, sessions and rights of its own.
def engines(config: Config, settings: WebSettings) -> dict[str, Config]:
    """The engine of this configuration and those that it names as well, by the paths that their views have.

    Raises `UserError` if one cannot be read, or if two that would share a store and an origin have one name.
    """
    found = {settings.root: config}
    for one in map(configuration.load, settings.engines):
        if any(one.engine.name == other.engine.name for other in found.values()):
            raise UserError(
                f"{config.source}: [web] engines: {one.source}: another engine has the name"
                f' "{one.engine.name}": set [engine] name'
            )
        found[f"{settings.root}/engine/{one.engine.name}"] = one
    return found
