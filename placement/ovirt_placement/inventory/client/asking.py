"""Asks inventory services; one that hangs is not asked again for a while, and that is logged once."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from pathlib import Path

from ovirt_placement.inventory.published import protocol
from ovirt_placement.inventory.published.protocol import Answer, Hangs, NoAnswer, Question
from ovirt_service.saying import Said

#: A service that hangs is asked again after this time.
_HANGING_SECONDS = 5.0
#: One that has not heard a short question for so long hangs.
_HEARD_SECONDS = 1.0
#: A question is short whose answer is waited for less than this.
_SHORT_SECONDS = 5.0

_log = logging.getLogger(__name__)
_said = Said()


class Services:
    """What a process knows of the services that it has asked, by their directories."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """The clock is one that is never set, in seconds."""
        self._clock = clock
        #: Services that hang, and until when they are not asked.
        self._hanging: dict[Path, float] = {}
        #: Services that have heard no question, and since when.
        self._unheard: dict[Path, float] = {}

    def ask(self, directory: Path, question: Question, timeout: float, kind: type[Answer]) -> Answer:
        """Ask a service. Raises what `protocol.ask` raises."""
        if self._hanging.get(directory, -math.inf) > self._clock():
            raise Hangs
        try:
            reply = protocol.ask(directory, question, timeout, kind)
        except Hangs:
            first = self._unheard.setdefault(directory, self._clock())
            if self._clock() - first < _HEARD_SECONDS and timeout < _SHORT_SECONDS:
                raise NoAnswer from None  # after a short wait it looks like a busy machine
            self._hanging[directory] = self._clock() + _HANGING_SECONDS
            if _said.is_news(directory):
                _log.warning("the inventory at %s hangs", directory)
            raise
        except NoAnswer:
            self._heard(directory)
            raise
        self._heard(directory)
        return reply

    def _heard(self, directory: Path) -> None:
        self._unheard.pop(directory, None)
        if _said.is_over(directory):
            _log.warning("the inventory at %s answers again", directory)
