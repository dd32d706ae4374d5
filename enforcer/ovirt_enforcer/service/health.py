"""Says at /healthz whether the enforcer gets on, who leads, and how its last cycle went."""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec

from ovirt_enforcer.service.leading import Leader
from ovirt_placement.engine.connection.client import EngineAway
from ovirt_placement.inventory import NoSnapshot
from ovirt_service.http.response import Response
from ovirt_service.progress import Progress


def engine_is_away(error: Exception | None) -> bool:
    """Whether a cycle failed since nothing was to be had from the engine, or is known of it."""
    return isinstance(error, EngineAway | NoSnapshot)


class Health:
    """What the loop notes, and a page from another thread shows."""

    def __init__(
        self, progress: Progress, leader: Leader, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._progress = progress
        self._leader = leader
        self._clock = clock
        #: When the last cycle ended, and why it failed, if it did.
        self._cycle: tuple[float, Exception | None] | None = None

    def cycled(self, error: Exception | None = None) -> None:
        """Note that a cycle has ended, and whether it failed."""
        self._cycle = self._clock(), error

    def page(self) -> Response:
        """Answer 200 while work gets on, be it of a leader or of a follower, and 503 once it hangs.

        An engine or a store that is away is reported, and is no reason to start the process again.
        """
        status = HTTPStatus.SERVICE_UNAVAILABLE if self._progress.hangs else HTTPStatus.OK
        return Response(msgspec.json.encode(self._state()) + b"\n", "application/json", status)

    def _state(self) -> dict[str, Any]:
        epoch, (at, error) = self._leader.epoch, self._cycle or (None, None)
        return {
            "status": "hangs" if self._progress.hangs else "ok",
            "role": "leader" if epoch else "follower",
            "leader": self._leader.known,
            "epoch": epoch,
            "last_cycle_seconds_ago": None if at is None else round(self._clock() - at, 3),
            "last_cycle_error": None if error is None else str(error),
            # One that follows asks no engine.
            "engine_reachable": None if at is None or not epoch else not engine_is_away(error),
        }
