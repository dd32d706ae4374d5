"""One notice, and whether all channels have it."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ovirt_enforcer.notifications.kinds import NoticeKind

_LARGEST_NUMBER: Final = 0x7FFFFFFF


def draw_number() -> int:
    """Draw a number for an event: the engine takes each only once, for ever, so no counter would do."""
    return 1 + secrets.randbelow(_LARGEST_NUMBER)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that happened, with the facts that sentences speak of."""

    kind: NoticeKind
    facts: Mapping[str, str]
    #: Ids, where the engine has what it is about.
    cluster: str | None = None
    vm: str | None = None
    #: What it reports together, each by itself; none if it reports one thing.
    carried: tuple[Notice, ...] = ()
    number: int = field(default_factory=draw_number)
    #: Whether nobody can have sent this number before.
    fresh: bool = True
    #: Whether somebody has written the number down, who must choose another one if it is taken.
    written: bool = False
    #: In seconds since the epoch.
    at: float = field(default_factory=time.time)


class Receipt:
    """What became of a notice; for any thread."""

    def __init__(self, channels: int) -> None:
        self._lock = threading.Lock()
        self._waiting = channels
        self._failed = False
        #: Whether the engine has had another event of this number: it wants another one.
        self.number_taken = False

    def settle(self, delivered: bool) -> None:
        """Take note that a channel has delivered it, or has given up."""
        with self._lock:
            self._waiting -= 1
            self._failed |= not delivered

    @property
    def over(self) -> bool:
        """Whether nobody is about to deliver it any more."""
        return self._waiting == 0

    @property
    def delivered(self) -> bool:
        """Whether all have it."""
        return self.over and not self._failed
