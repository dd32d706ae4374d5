"""The state that is answered by: the version, with the open intents of the store and what was accepted."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import TimeoutError as NotInTime

import msgspec

from ovirt_placement.config import Config
from ovirt_placement.inventory.client.overlay import IntentOverlay
from ovirt_placement.inventory.decision import Awaited, Base, Decisions, NoSnapshot
from ovirt_placement.inventory.published import sections
from ovirt_placement.inventory.published.protocol import Refresh, State
from ovirt_placement.inventory.published.publication import now
from ovirt_placement.inventory.service.publisher import Publisher, Version
from ovirt_placement.inventory.service.readers import Readers


class ServedState:
    """A `Source` of decisions for other threads than that of the loop; made within the loop."""

    def __init__(self, publisher: Publisher, readers: Readers, config: Config) -> None:
        self._publisher = publisher
        self._readers = readers
        self._intents = IntentOverlay(config.store, config.engine.name)
        self._loop = asyncio.get_running_loop()
        self.decisions = Decisions(self, config.inventory)

    def close(self) -> None:
        """Close the store."""
        self._intents.close()

    def look(self) -> None:
        """Guess where what was accepted will be, while nothing shows yet what came of it."""
        if self.decisions.accepted.has_news and (last := self.last()) is not None:
            self.decisions.accepted.over(last.snapshot, last.as_of, now())

    def since(self, version: Version, known: int | None) -> State:
        """What a reader gets who has a version: what has changed since, and what is on its way.

        Who has a later one, of a service that was killed before it had saved that, gets all.
        """
        snapshot = self._intents.over(version.snapshot)
        snapshot = self.decisions.accepted.over(snapshot, version.moments.as_of, now())
        encoded = () if known in (None, version.number) else self._publisher.encoded(version)
        since = known if known is not None and known < version.number else 0
        return State(
            version=version.number,
            moments=tuple(version.moments),
            sections=sections.versions_packed(encoded) if encoded else b"",
            changed={at: one.content for at, one in enumerate(encoded) if one.version > since},
            pending=msgspec.Raw(msgspec.msgpack.encode(snapshot.pending[len(version.snapshot.pending) :])),
            outcomes=self.decisions.accepted.outcomes(),
        )

    def base(self, max_age: float, until: float, vm: str | None = None, *, patient: bool = True) -> Base:
        """The version, once it is fresh enough and the engine was asked for the VM."""
        question = Refresh(now() - max_age, max_age <= 0, vm)
        if not self._readers.holds(question):
            if not patient and not self._readers.knows(question):
                self._loop.call_soon_threadsafe(self._readers.want, question)
                raise Awaited("the engine is being asked for a VM that it has not shown yet")
            waiting = asyncio.run_coroutine_threadsafe(self._readers.fresh(question), self._loop)
            try:
                error = waiting.result(max(0.0, until - time.monotonic()))
            except NotInTime:
                waiting.cancel()
                raise NoSnapshot("no fresh snapshot in time: the engine has not answered yet") from None
            if error is not None:
                raise NoSnapshot(f"no fresh snapshot: {error}")
        last = self.last()
        if last is None:
            raise NoSnapshot("no fresh snapshot: nothing was read yet")
        return last

    def as_of(self) -> float | None:
        """The moment of the version; None before there is one."""
        version = self._publisher.version
        return None if version is None else version.moments.as_of

    def last(self) -> Base | None:
        """The version, however old; None before there is one."""
        version = self._publisher.version
        if version is None:
            return None
        return Base(self._intents.over(version.snapshot), version.moments.as_of)
