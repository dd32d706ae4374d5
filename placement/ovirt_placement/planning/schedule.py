"""When the steps of a plan begin and end under limits of how many run at once: a simulation."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol


class Timed(Protocol):
    """What a step of a plan is to a schedule."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The host that each of its VMs leaves."""
        ...

    @property
    def target(self) -> str: ...

    @property
    def after(self) -> tuple[int, ...]:
        """The places of the steps, all earlier ones, that must have ended."""
        ...

    @property
    def seconds(self) -> float: ...


#: A direction and a host.
_Place = tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleLimits:
    """Migrations that run at once at most; a step of more VMs than that runs when nothing else does."""

    out: int = 2
    into: int = 2
    cluster: int | None = None
    engine: int | None = None

    @property
    def in_all(self) -> float:
        return min(known for known in (self.cluster, self.engine, float("inf")) if known is not None)


@dataclass(frozen=True, slots=True)
class Schedule:
    """In seconds from the beginning, step by step."""

    starts: tuple[float, ...]
    ends: tuple[float, ...]
    #: Under the same limits no schedule takes less: that is how long the busiest host needs, or the longest
    #: row of steps of which each waits for the one before.
    at_least: float

    @property
    def makespan(self) -> float:
        return max(self.ends, default=0.0)


def schedule(steps: Sequence[Timed], limits: ScheduleLimits) -> Schedule:
    """List scheduling: whenever a migration may begin, the most urgent one that may does."""
    urgent = _urgencies(steps, limits)
    running = _Running(steps, limits)
    waiting_for = [len(step.after) for step in steps]
    followers = _followers(steps)
    starts, ends = [0.0] * len(steps), [0.0] * len(steps)
    open_steps = sorted((at for at, count in enumerate(waiting_for) if not count), key=lambda at: urgent[at])
    under_way: list[tuple[float, int]] = []
    now = 0.0
    while open_steps or under_way:
        for at in list(open_steps):
            if running.admit(at):
                open_steps.remove(at)
                starts[at], ends[at] = now, now + steps[at].seconds
                heappush(under_way, (ends[at], at))
        now, ended = heappop(under_way)
        running.release(ended)
        for follower in followers[ended]:
            waiting_for[follower] -= 1
            if not waiting_for[follower]:
                open_steps.append(follower)
        open_steps.sort(key=lambda at: urgent[at])
    return Schedule(tuple(starts), tuple(ends), busiest(steps, limits))


def ready(
    steps: Sequence[Timed],
    done: Collection[int],
    running: Collection[int],
    limits: ScheduleLimits = ScheduleLimits(),
) -> tuple[int, ...]:
    """Steps that may begin now, the most urgent first; whether a limit holds one back is the caller's matter.

    `done` and `running` are places in the plan.
    """
    ended, begun = set(done), {*done, *running}
    open_steps = [at for at, step in enumerate(steps) if at not in begun and ended.issuperset(step.after)]
    urgent = _urgencies(steps, limits, ended)
    return tuple(sorted(open_steps, key=lambda at: urgent[at]))


def busiest(steps: Sequence[Timed], limits: ScheduleLimits) -> float:
    """Seconds that the busiest host, the cluster, or the longest row of steps takes at least."""
    return max(
        *_loads(steps, limits).values(),
        sum(step.seconds * _weight(step, limits.in_all) for step in steps) / limits.in_all,
        *_remaining(steps, loads={}),
        0.0,
    )


def _urgencies(
    steps: Sequence[Timed], limits: ScheduleLimits, ended: Collection[int] = ()
) -> list[tuple[float, float, int]]:
    """The less, the more urgent: steps that a long row follows, or that a busy host is to make."""
    loads = _loads((step for at, step in enumerate(steps) if at not in ended), limits)
    remaining = _remaining(steps, loads)
    return [(-remaining[at], -step.seconds, at) for at, step in enumerate(steps)]


def _remaining(steps: Sequence[Timed], loads: dict[_Place, float]) -> list[float]:
    """Seconds from the beginning of each step to the end of the plan, at least."""
    followers = _followers(steps)
    remaining = [0.0] * len(steps)
    for at in reversed(range(len(steps))):
        step = steps[at]
        row = step.seconds + max((remaining[follower] for follower in followers[at]), default=0.0)
        its_hosts = (*(("out", source) for source in step.sources), ("into", step.target))
        remaining[at] = max(row, *(loads.get(host, 0.0) for host in its_hosts))
    return remaining


def _followers(steps: Sequence[Timed]) -> list[list[int]]:
    followers: list[list[int]] = [[] for _ in steps]
    for at, step in enumerate(steps):
        for before in step.after:
            followers[before].append(at)
    return followers


def _loads(steps: Iterable[Timed], limits: ScheduleLimits) -> dict[_Place, float]:
    """Seconds that each host sends and receives, as many migrations at once as it may."""
    loads: defaultdict[_Place, float] = defaultdict(float)
    for step in steps:
        for source in set(step.sources):
            loads["out", source] += step.seconds * _weight(step, limits.out) / limits.out
        loads["into", step.target] += step.seconds * _weight(step, limits.into) / limits.into
    return loads


def _weight(step: Timed, limit: float) -> float:
    """How many migrations it counts for: those of a group that moves at once queue on their host."""
    return min(len(step.sources), limit)


class _Running:
    """What is under way, counted at each place that has a limit."""

    def __init__(self, steps: Sequence[Timed], limits: ScheduleLimits) -> None:
        self._needed = [_needed(step, limits) for step in steps]
        self._counts: defaultdict[_Place, float] = defaultdict(float)

    def admit(self, at: int) -> bool:
        """Begin a step, if no limit stands against it."""
        for place, weight, limit in self._needed[at]:
            if self._counts[place] + weight > limit:
                return False
        for place, weight, _ in self._needed[at]:
            self._counts[place] += weight
        return True

    def release(self, at: int) -> None:
        for place, weight, _ in self._needed[at]:
            self._counts[place] -= weight


def _needed(step: Timed, limits: ScheduleLimits) -> list[tuple[_Place, float, float]]:
    """Where a step counts, for how many migrations, and how many there may be."""
    places: list[tuple[_Place, float]] = [
        (("out", source), limits.out) for source in sorted(set(step.sources))
    ]
    places += [(("into", step.target), limits.into), (("in all", ""), limits.in_all)]
    return [(place, _weight(step, limit), limit) for place, limit in places]
