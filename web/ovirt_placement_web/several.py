"""Several engines on one page: each below its own path, with log-ins, sessions and rights of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from starlette.types import ASGIApp, Receive, Scope, Send

from ovirt_placement import config as configuration
from ovirt_placement.config import Config
from ovirt_placement_web import audit
from ovirt_placement_web.settings import WebSettings
from ovirt_service.errors import UserError


class Place(NamedTuple):
    """An engine that the page shows, and the path that its views begin with."""

    config: Config
    root: str

    @property
    def name(self) -> str:
        return self.config.engine.name


def places(config: Config, settings: WebSettings) -> tuple[Place, ...]:
    """The engine of this configuration, and those that it names as well.

    Raises `UserError` if one cannot be read, or if two have the same name: they share a store, an origin and
    an audit log.
    """
    further = [configuration.load(path) for path in settings.engines]
    found = [Place(config, settings.root)]
    for one in further:
        if any(one.engine.name == other.name for other in found):
            raise UserError(
                f"{config.source}: [web] engines: {one.source}: another engine has the name"
                f' "{one.engine.name}": set [engine] name'
            )
        found.append(Place(one, f"{settings.root}/engine/{one.engine.name}"))
    return tuple(found)


class ByPath:
    """Hands each request to the application of the engine below whose path it is; else to the first one's."""

    def __init__(self, first: Place, app: ASGIApp, further: Sequence[tuple[Place, ASGIApp]]) -> None:
        self._first = (first, app)
        self._further: Mapping[str, tuple[Place, ASGIApp]] = {
            place.root: (place, app) for place, app in further
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        place, app = self._of(scope.get("path", ""))
        with audit.of_engine(place.config.engine.label):
            await app(scope, receive, send)

    def _of(self, path: str) -> tuple[Place, ASGIApp]:
        for root, found in self._further.items():
            if path == root or path.startswith(f"{root}/"):
                return found
        return self._first
