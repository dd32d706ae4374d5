"""What a policy unit decides on: fresh if the engine answers at once, else what was known last.

The engine holds a thread for each start until it is scheduled, and waits for us meanwhile. If it has none
left to answer us, waiting would end when one of the two gives up.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from ovirt_placement.config import InventorySettings
from ovirt_placement.inventory.accepted import Accepted
from ovirt_placement.inventory.publication import now
from ovirt_placement.model import Snapshot
from ovirt_service.errors import UserError

#: After an answer that did not come in time, the engine is not waited for again so soon.
_LATE_SECONDS = 3.0
_MS = 1000.0


class NoSnapshot(UserError):
    """Nothing fresh enough is known of the engine, and nothing came in time."""


class Awaited(NoSnapshot):
    """The engine is being asked for the VM: an answer will be known in a moment."""


class Base(NamedTuple):
    """The engine's state with the open intents of the store, and without what is expected."""

    snapshot: Snapshot
    #: The moment at which it was true.
    as_of: float
    #: Whether it is what a service had saved before it started again, and nothing was read since.
    saved: bool = False


class Source(Protocol):
    """Where the state is from: the service that follows the engine, or a reading of the engine itself."""

    def base(self, max_age: float, until: float, vm: str | None = None, *, patient: bool = True) -> Base:
        """The state, no older than `max_age` seconds; `until` is a moment of `time.monotonic`.

        With `vm`, the engine was asked for it lately; who is not `patient` does not wait for that: raises
        `Awaited` at once. Raises `NoSnapshot` if nothing comes in time.
        """

    def as_of(self) -> float | None:
        """The moment at which what was read last was true; None if that is nothing."""

    def last(self) -> Base | None:
        """What was known last, however old; None if that is nothing. It looks into the store."""


@dataclass(frozen=True)
class Decision:
    """The state of the engine that one question is decided on."""

    base: Base
    accepted: Accepted
    #: The VM that is decided about, if it is one.
    asked: str | None = None
    #: Whether the engine is asked for it.
    awaited: bool = False

    @property
    def confirmed(self) -> Snapshot:
        """What the engine has shown, and what the enforcer has begun: filters go by it."""
        return self.base.snapshot

    @cached_property
    def snapshot(self) -> Snapshot:
        """The same with the placements that are expected: weights go by it."""
        return self.accepted.over(self.base.snapshot, self.base.as_of, now(), self.asked)

    @property
    def age_seconds(self) -> float:
        """How long ago something may have happened that is not in it."""
        return max(0.0, now() - self.base.as_of)


class Decisions:
    """The states that one process decides on; for any thread."""

    def __init__(self, source: Source, settings: InventorySettings) -> None:
        self.accepted = Accepted(settings.expected_seconds)
        self._source = source
        self._settings = settings
        #: Of which moment, until when, and why a fresher state is not waited for.
        self._late: tuple[float | None, float, str] = (None, 0.0, "")

    def about(
        self, asked: str | None = None, *, missing: bool = False, patient: bool, first_seconds: float
    ) -> Decision:
        """Return what is known of the engine, waiting for it no longer than `engine_wait_ms`.

        `asked` is the VM that is decided about, if it is one; if it was `missing` before, the engine is asked
        for it, and who is not `patient` does not wait for that. Where nothing was read yet, there is
        at most what a service had saved before it started again: it waits up to `first_seconds`, if that
        is longer.

        Raises `NoSnapshot` if nothing that is known is young enough.
        """
        began, as_of = time.monotonic(), self._source.as_of()
        usual = self._settings.engine_wait_ms / _MS
        patience = max(usual, first_seconds) if as_of is None else usual
        unknown = asked if missing else None
        late_of, until, why = self._late
        if late_of == as_of and began < until:
            last = self._source.last()
            if last is None or unknown is None or unknown in last.snapshot.vm_by_id:
                return Decision(self._checked(last, NoSnapshot(why)), self.accepted, asked)
        try:
            base = self._source.base(
                self._settings.max_age_seconds, began + patience, unknown, patient=patient
            )
        except Awaited as error:
            return Decision(self._checked(self._source.last(), error), self.accepted, asked, awaited=True)
        except NoSnapshot as error:
            self._late = as_of, time.monotonic() + _LATE_SECONDS, str(error)
            base = self._checked(self._source.last(), error)
        return Decision(base, self.accepted, asked)

    def _checked(self, last: Base | None, error: NoSnapshot) -> Base:
        """Raises the error if there is no last state, or if that is too old."""
        if last is None or now() - last.as_of > self._settings.longest_age_seconds:
            raise error
        return last
