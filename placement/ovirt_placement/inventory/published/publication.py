"""A version of the engine's state as readers have it, and the moments at which its parts were true."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

from ovirt_placement.inventory.published.sections import Decoded
from ovirt_placement.model import Snapshot

_NEVER = float("-inf")


class Moments(NamedTuple):
    """Since when the parts of a snapshot may be out of date, by `now`; minus infinity for never read."""

    #: When the engine was last asked what has changed; what happened later may be missing, and of a few
    #: objects about which it takes long to answer also what happened before.
    read_at: float
    #: When all was last read, whatever had changed.
    whole_at: float = _NEVER
    #: When it was last read how busy hosts and VMs are.
    statistics_at: float = _NEVER
    #: When the store was last asked for placement keys, whether or not it answered.
    store_asked_at: float = _NEVER
    #: When the placement keys were those of the store.
    keys_at: float = _NEVER
    #: When all that placement keys refer to was last read of all VMs; what events reported since is there,
    #: too.
    details_at: float = _NEVER
    #: When the engine last answered all searches for members of placement rules.
    searches_at: float = _NEVER

    @property
    def as_of(self) -> float:
        """What happened before this moment is there, as far as the engine and the store reported it.

        A store that does not answer makes nothing older: what it said last counts.
        """
        return min(self.read_at, self.store_asked_at)

    @property
    def store_answers(self) -> bool:
        """Whether the store could be read when it was last asked for placement keys."""
        return self.keys_at == self.store_asked_at


class Outcomes(NamedTuple):
    """How many of the latest guesses where a VM would start were right, and how many wrong.

    Those of VMs that ended apart from others of their hard groups are counted by themselves.
    """

    right: int
    wrong: int
    apart: int


@dataclass(frozen=True)
class Publication:
    """What the inventory service knows, in a version."""

    #: The same number means the same content; a higher one is newer, also after the service restarted.
    version: int
    moments: Moments
    decoded: Decoded
    outcomes: Outcomes

    @property
    def snapshot(self) -> Snapshot:
        return self.decoded.snapshot

    @property
    def age_seconds(self) -> float:
        """How long ago something may have happened that is not there."""
        return now() - self.moments.as_of

    @property
    def engine_age_seconds(self) -> float | None:
        """How long ago the engine was last asked what has changed."""
        return age(self.moments.read_at)

    @property
    def whole_age_seconds(self) -> float | None:
        """How long ago all was last read, whatever had changed; None if that was never."""
        return age(self.moments.whole_at)

    @property
    def statistics_age_seconds(self) -> float | None:
        """How old the figures of CPU and memory use are; None if there are none."""
        return age(self.moments.statistics_at)

    @property
    def keys_age_seconds(self) -> float | None:
        """How long ago the placement keys were those of the store; None if it never could be read."""
        return age(self.moments.keys_at)

    @property
    def details_age_seconds(self) -> float | None:
        """How long ago disks, interfaces or owners of all VMs were read; None if not all are there."""
        return age(self.moments.details_at)

    @property
    def searches_age_seconds(self) -> float | None:
        """How long ago the searches of placement rules were answered; None if not all were."""
        return age(self.moments.searches_at)


def age(moment: float) -> float | None:
    """How many seconds ago a moment was; None for never."""
    return None if moment == _NEVER else now() - moment


def now() -> float:
    """Seconds since the machine started: one clock for all its processes, that nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
