"""Has the engine asked in a thread; a failure is reported once, until the engine answers everybody again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from ovirt_placement.engine.connection.client import EngineAway
from ovirt_placement.inventory.service.attempts import Attempts, in_thread
from ovirt_service.errors import UserError
from ovirt_service.saying import Said
from ovirt_service.systemd import Notifier

_Result = TypeVar("_Result")

_log = logging.getLogger(__name__)


class Asking:
    """Asks for all loops of the service."""

    def __init__(self, notifier: Notifier, has_published: Callable[[], bool]) -> None:
        self._notifier = notifier
        self._has_published = has_published
        self._said = Said()
        self._failing: set[Attempts] = set()

    async def attempt(self, attempts: Attempts, ask: Callable[[], _Result]) -> _Result | None:
        """Ask in a thread; None if that failed. Raises what no waiting can heal at the start."""
        try:
            result = await in_thread(ask)
        except UserError as error:
            if not self._has_published() and not isinstance(error, EngineAway):
                raise
            self._failed(attempts, str(error))
        except Exception as error:
            _log.exception("reading the engine failed")
            self._failed(attempts, f"reading the engine failed: {error}")
        else:
            attempts.failures = 0
            self._failing.discard(attempts)
            if not self._failing and self._said.is_over("engine"):
                _log.info("the engine answers again")
            return result
        return None

    def _failed(self, attempts: Attempts, text: str) -> None:
        if self._said.is_news("engine"):
            _log.warning("%s; asking again until it answers", text)
        attempts.error = text
        attempts.failures += 1
        self._failing.add(attempts)
        self._notifier.ready()  # it serves and tries: more cannot be expected of it now
