"""The running enforcer: its loop in one thread, signals in another, and what systemd hears of it.

The main thread waits for signals and does nothing else, so SIGTERM is obeyed at once, whatever the loop waits
for: an engine that hangs, or a store that is locked. What is under way then is what a killed process leaves.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Final, NoReturn

from ovirt_enforcer.service.assembly import Service
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import connect
from ovirt_service.progress import Progress
from ovirt_service.stopping import Stop
from ovirt_service.systemd import Notifier

#: For so long the loop may go on once it is to end.
_LAST_SECONDS: Final = 0.7
#: For so long the log may take to write that down.
_LAST_WORD_SECONDS: Final = 0.3
#: How soon it is noticed that the loop has ended by itself.
_LOOK_SECONDS: Final = 0.2
#: One piece of work may take this many slow requests and this much time for itself; then it hangs.
_MOST_SLOW_REQUESTS: Final = 10
_LONGEST_WORK_SECONDS: Final = 60.0

_log = logging.getLogger(__name__)


def run(config: Config, ready: Callable[[str], None]) -> None:
    """Enforce until SIGTERM or SIGINT; `ready` is called once with what is watched, and how."""
    stop, notifier = Stop(), Notifier()
    loop = _Loop(config, ready, notifier)
    loop.start()
    while loop.is_alive() and not stop.sleep(_LOOK_SECONDS):
        pass
    if stop.requested:
        notifier.stopping()
        loop.end()
        loop.join(_LAST_SECONDS)
        if loop.is_alive():
            _end_in_the_middle()
    if loop.error is not None:
        raise loop.error


def _end_in_the_middle() -> NoReturn:
    """End with the loop still at work; where even the log takes nothing any more, without a word."""
    saying = threading.Thread(target=_say_so, daemon=True)
    saying.start()
    saying.join(_LAST_WORD_SECONDS)
    os._exit(0)


def _say_so() -> None:
    _log.info("ended in the middle of its work: nobody waits for the answer of engine or store")
    logging.shutdown()


class _Loop(threading.Thread):
    """The thread in which everything is done."""

    def __init__(self, config: Config, ready: Callable[[str], None], notifier: Notifier) -> None:
        super().__init__(name="loop", daemon=True)
        self._config = config
        self._ready = ready
        self._notifier = notifier
        self._progress = Progress(_LONGEST_WORK_SECONDS + _MOST_SLOW_REQUESTS * config.engine.timeout_seconds)
        self._service: Service | None = None
        self._ending = False
        #: What ended it before its time.
        self.error: BaseException | None = None

    def end(self) -> None:
        """Let it end, at the next opportunity."""
        self._ending = True
        if self._service is not None:
            self._service.wake()

    def run(self) -> None:
        try:
            with connect(self._config.engine) as connection:
                self._service = service = Service(
                    self._config, connection, self._progress, lambda: self._ending
                )
                self._ready(f"watching {connection.settings.address} (mode {service.settings.mode})")
                self._notifier.ready()
                self._notifier.keep_alive_concurrently(lambda: self._progress.hangs)
                service.run()
        except BaseException as error:  # the main thread raises it
            self.error = error
