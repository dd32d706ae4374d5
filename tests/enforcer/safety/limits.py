"""Says which limits a request of the enforcer has passed, by what was under way and what was begun before."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ovirt_enforcer.settings import EnforcerSettings

#: A database shows the time of day no finer: by its clock, which the limits go by, so much less is the whole.
CLOCK_GRAIN_SECONDS = 0.001
_HOUR_SECONDS = 3600.0


@dataclass
class Begun:
    """A migration that the engine has begun, and how it ended, once it has."""

    vm: str
    source: str
    target: str
    #: The request's correlation id where it is the enforcer's.
    request: str | None
    at: float
    #: Its place in the sequence of all that happened.
    tick: int
    #: How often the engine was read before.
    reading: int
    ended: float = math.inf
    arrived: bool | None = None


def passed(
    settings: EnforcerSettings,
    under_way: Mapping[str, int],
    ever: Sequence[Begun],
    new: Sequence[Begun],
    now: float,
) -> list[str]:
    """The limits that a request has passed with what it began.

    `under_way` counts what was so before it, as far as anybody can know, and `ever` is all that the enforcer
    began in the cluster before. Of a group that the engine moves at once all VMs count; alone it may be more
    than a limit.
    """
    first, more = new[0], len(new)
    counts = {
        **under_way,
        "cycle": _lately(ever, settings.interval_seconds, now),
        "hour": _lately(ever, _HOUR_SECONDS, now),
    }
    limits = {
        "engine": settings.migrations_at_once,
        "cluster": settings.cluster_migrations_at_once,
        "host out": settings.host_migrations_out,
        "host in": settings.host_migrations_in,
        "cycle": settings.cluster_migrations_per_cycle,
        "hour": settings.cluster_migrations_per_hour,
    }
    faults = [
        f"{now:.1f}: {first.vm} to {first.target}: {count} + {more} pass the limit {limits[name]} ({name})"
        for name, count in counts.items()
        if count and count + more > limits[name]
    ]
    for one in new:
        count = _lately([other for other in ever if other.vm == one.vm], _HOUR_SECONDS, now)
        if count >= settings.vm_migrations_per_hour:
            faults.append(f"{now:.1f}: {one.vm} was moved {count} times within the hour, and again")
    return faults


def _lately(begun: Sequence[Begun], seconds: float, now: float) -> int:
    return sum(now - one.at < seconds - CLOCK_GRAIN_SECONDS for one in begun)
