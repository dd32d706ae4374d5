"""Says which limits a request of the enforcer has passed, by what was under way and what was begun before."""

from __future__ import annotations

import math
from collections.abc import Sequence
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


@dataclass(frozen=True)
class Counts:
    """What was under way before a request, as far as anybody can know."""

    engine: int
    cluster: int
    #: From the host that the request is about, and to its target.
    leaving: int
    entering: int
    #: All that the enforcer ever began in the cluster.
    ever: Sequence[Begun]


def passed(settings: EnforcerSettings, counts: Counts, new: Sequence[Begun], now: float) -> list[str]:
    """The limits that a request has passed with what it began.

    Of a group that the engine moves at once all VMs count; alone it may be more than a limit.
    """
    first, more = new[0], len(new)
    of_cycle = _lately(counts.ever, settings.interval_seconds, now)
    limits = (
        ("engine", counts.engine, settings.migrations_at_once),
        ("cluster", counts.cluster, settings.cluster_migrations_at_once),
        ("host out", counts.leaving, settings.host_migrations_out),
        ("host in", counts.entering, settings.host_migrations_in),
        ("cycle", of_cycle, settings.cluster_migrations_per_cycle),
        ("hour", _lately(counts.ever, _HOUR_SECONDS, now), settings.cluster_migrations_per_hour),
    )
    faults = [
        f"{now:.1f}: {first.vm} to {first.target}: {count} + {more} pass the limit {limit} ({name})"
        for name, count, limit in limits
        if count and count + more > limit
    ]
    for one in new:
        count = _lately([other for other in counts.ever if other.vm == one.vm], _HOUR_SECONDS, now)
        if count >= settings.vm_migrations_per_hour:
            faults.append(f"{now:.1f}: {one.vm} was moved {count} times within the hour, and again")
    return faults


def _lately(begun: Sequence[Begun], seconds: float, now: float) -> int:
    return sum(now - one.at < seconds - CLOCK_GRAIN_SECONDS for one in begun)
