"""Whether the engine's clock and ours show the same time: events are judged by their age."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from ovirt_placement.answers.doctor.finding import Finding
from ovirt_placement.engine.parsing.users import Root

_SKEW_SECONDS = 10.0
#: A clock this many times as fast as ours belongs to a simulated engine; no other is wrong by so much.
_FAST = 1.5
#: Two readings show how fast a clock runs if so much time is between them.
_APART_SECONDS = 1.0


class Reading(NamedTuple):
    """Both clocks at one moment, in seconds since the epoch."""

    engine: float
    here: float
    #: Before or after `here`: as long as half of the request took.
    unsure: float = 0.0

    @property
    def ahead(self) -> float:
        return self.engine - self.here

    @property
    def differs(self) -> bool:
        return abs(self.ahead) > _SKEW_SECONDS


def read(ask: Callable[[], Root]) -> tuple[Root, Reading]:
    """Ask for the engine's root, and compare; an engine that reports no time has ours."""
    began = time.time()
    root = ask()
    ended = time.time()
    here = (began + ended) / 2
    engine = datetime.fromisoformat(root.time).timestamp() if root.time else here
    return root, Reading(engine, here, (ended - began) / 2)


def read_again(ask: Callable[[], Root], first: Reading) -> Reading:
    """Compare once more, long enough after the first time to see how fast the engine's clock runs."""
    time.sleep(max(0.0, first.here + _APART_SECONDS - time.time()))
    return read(ask)[1]


def speed(first: Reading, second: Reading) -> float:
    """How many times as fast as ours the engine's clock runs, at least; 0 where nothing is known."""
    longest = second.here - first.here + first.unsure + second.unsure
    return (second.engine - first.engine) / longest if longest > 0 else 0.0


def is_simulated(first: Reading, second: Reading) -> bool:
    return speed(first, second) > _FAST


def reported_as_hint(first: Reading, second: Reading) -> str:
    return (
        f"the engine's clock runs {speed(first, second):.0f} times as fast as this one, as only a simulated"
        f" engine's does; that it is {first.ahead:.0f} s ahead is no fault"
    )


def finding(first: Reading) -> Finding:
    ahead = first.ahead
    return Finding(
        kind="clocks_differ",
        what=f"the engine's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this one:"
        " events are taken for older or younger than they are",
        remedy="let both machines keep their time by NTP (chronyc tracking)",
    )
