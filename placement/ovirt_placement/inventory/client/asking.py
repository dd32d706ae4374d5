"""Asks inventory services; one that hangs is not asked again for a while, and that is logged once."""

from __future__ import annotations

import logging
import math
import time
from pathlib import Path

from ovirt_placement.inventory.published import protocol
from ovirt_placement.inventory.published.protocol import Hangs, NoAnswer, NoService, Question, Reply
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

    def __init__(self) -> None:
        #: Services that hang, and until when they are not asked.
        self._hanging: dict[Path, float] = {}
        #: Services that did not hear a question, and since when.
        self._unheard: dict[Path, float] = {}

    def ask(self, directory: Path, question: Question, timeout: float) -> Reply:
        """Ask a service. Raises what `protocol.ask` raises."""
        if self._hanging.get(directory, -math.inf) > time.monotonic():
            raise NoService
        try:
            reply = protocol.ask(directory, question, timeout)
        except Hangs:
            first = self._unheard.setdefault(directory, time.monotonic())
            if time.monotonic() - first < _HEARD_SECONDS and timeout < _SHORT_SECONDS:
                raise NoAnswer from None  # after a short wait it looks like a busy machine
            self._hanging[directory] = time.monotonic() + _HANGING_SECONDS
            if _said.is_news(directory):
                _log.warning("the inventory at %s hangs: the engine is read without it", directory)
            raise
        self._unheard.pop(directory, None)
        if _said.is_over(directory):
            _log.warning("the inventory at %s answers again", directory)
        return reply
