"""A part that is away in the middle of a storm, and comes back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.integration.storms.stage import Stage

#: How long a part is away.
_AWAY_SECONDS = 3.0
_PATIENCE_SECONDS = 60.0


class Outage:
    """Takes a part away once this many starts are answered; killed it starts again, frozen it goes on."""

    def __init__(self, stage: Stage, part: str, after: int, *, killed: bool) -> None:
        self._stage, self._part, self._killed = stage, part, killed
        self._after = after
        self._returning = threading.Event()
        self._thread = threading.Thread(target=self._befall)
        self._failure: Exception | None = None

    async def answered(self, count: int) -> None:
        """Take note of the answers to starts."""
        if count == self._after:
            self._thread.start()

    def wait_for_return(self) -> None:
        """Wait until the part is about to come back: what is asked now meets it while it starts."""
        assert self._returning.wait(_PATIENCE_SECONDS), f"{self._part} did not go and come back"

    def end(self) -> None:
        """Wait until the part is back."""
        self._thread.join(_PATIENCE_SECONDS)
        if self._failure is not None:
            raise self._failure

    def _befall(self) -> None:
        try:
            (self._stage.kill if self._killed else self._stage.freeze)(self._part)
            threading.Event().wait(_AWAY_SECONDS)
            self._returning.set()
            (self._stage.start if self._killed else self._stage.thaw)(self._part)
        except Exception as failure:
            self._failure = failure
            self._returning.set()


@contextmanager
def outage(stage: Stage, part: str, after: int, *, killed: bool) -> Iterator[Outage]:
    """Have a part be away during a block, at whose end it is back."""
    befalling = Outage(stage, part, after, killed=killed)
    yield befalling
    befalling.end()
