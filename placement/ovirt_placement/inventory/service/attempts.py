"""When the engine is asked again, and what is counted of that."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar

from prometheus_client import Counter

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineFault
from ovirt_placement.inventory.publication import now
from ovirt_placement.inventory.service.schedule import Subject, SubjectKind
from ovirt_placement.model import Snapshot
from ovirt_service.daemon import BackOff
from ovirt_service.metrics import Instruments
from ovirt_service.process import in_background
from ovirt_service.repetition import Said

#: However many ask for it, an engine that is away is not asked more often than this.
_SHORTEST_PAUSE_SECONDS = 1.0
#: By itself it is asked again after 1 s, 2 s, 4 s ... and at least so often.
LONGEST_PAUSE_SECONDS = 10.0
_BACK_OFF = BackOff(_SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)

_Result = TypeVar("_Result")

_log = logging.getLogger(__name__)


class Attempts:
    """One kind of request; made within the loop of asyncio that it is for."""

    def __init__(self) -> None:
        self.began = float("-inf")
        self.error: str | None = None
        self.failures = 0
        self.wanted = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def begin(self) -> float:
        self.wanted.clear()
        self.began, self.error = now(), None
        return self.began

    def want(self, not_before: float) -> None:
        """Let the next one begin at once, unless the last began at this moment or later."""
        if self.began < not_before:
            self.wanted.set()

    def want_from_any_thread(self) -> None:
        """Let the next one begin at once, whenever the last began."""
        with suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(self.wanted.set)

    async def pause(self, longer: float) -> None:
        """Wait so long, or for a reader who needs it now; after a failure, longer and longer."""
        if self.failures:
            await asyncio.sleep(_SHORTEST_PAUSE_SECONDS)
            longer = _BACK_OFF.pause_after(self.failures) - _SHORTEST_PAUSE_SECONDS
        with suppress(TimeoutError):
            await asyncio.wait_for(self.wanted.wait(), max(0.0, longer))


async def in_thread(work: Callable[[], _Result]) -> _Result:
    """Work in a thread that the end of the process does not wait for."""
    return await asyncio.wrap_future(in_background(work))


_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Asked(NamedTuple):
    """What one dialogue is about."""

    kind: SubjectKind
    ids: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} {', '.join(self.ids)}".rstrip()


class LateSubjects(set[Subject]):
    """Those that a search held up, or that were late: each is asked for by itself."""

    def __init__(self) -> None:
        super().__init__()
        self._said = Said()

    def note(self, asked: Asked, *, late: bool) -> None:
        """Take note of whether an answer is late: no other object shall wait for that the next time."""
        subjects = {Subject(asked.kind, identity) for identity in asked.ids}
        if late:
            self.update(subjects)
            if len(subjects) == 1 and self._said.is_news(asked):
                _log.warning("%s: the engine takes long to answer; all else is read meanwhile", asked)
        elif self & subjects:
            self.difference_update(subjects)
            if self._said.is_over(asked):
                _log.info("%s: the engine answers in time again", asked)


class InventoryMetrics(Instruments):
    """Counts and times; each is moved where it happens."""

    def __init__(self, engine: str = "") -> None:
        super().__init__("ovirt_placement_inventory", engine)
        self.versions = self.counter("versions", "Versions published")
        self.age = self.gauge(
            "snapshot_age_seconds",
            "Since when something may be missing in what is published; +Inf before anything is",
        )
        self.as_of = self.gauge(
            "snapshot_timestamp_seconds",
            "The moment that what is published shows whole, in seconds since 1970; 0 before anything is",
        )
        self.requests = self.counter(
            "engine_requests",
            "Requests to the engine by what is asked for; refused: it said no; failed: it gave no answer",
            "kind",
            "result",
        )
        self.readings = self.histogram(
            "reading_duration_seconds",
            "Time of a turn of the follower, and of each larger reading, whether or not it succeeded",
            "reading",
            buckets=_BUCKETS,
        )
        self.disabled_units = self.gauge(
            "disabled_units",
            "Units in the scheduling policy of a cluster that the engine has disabled: it does not ask them",
            "cluster",
        )
        self.questions = self.counter("questions", "Questions of readers by kind", "kind")
        self.closed = self.counter("readers_closed", "Readers closed since too many were connected")

    def count_disabled(self, snapshot: Snapshot) -> None:
        """Show how many units are disabled, by cluster; clusters that are gone are shown no more."""
        self.disabled_units.clear()
        for cluster in snapshot.clusters:
            policy = cluster.scheduling_policy
            self.disabled_units.labels(cluster.name).set(len(policy.disabled) if policy else 0)


class CountedConnection(EngineConnection):
    """A connection whose readings are counted."""

    def __init__(self, settings: EngineSettings, requests: Counter) -> None:
        super().__init__(settings)
        self._requests = requests

    def get(self, path: str, **query: str | int | bool) -> bytes:
        result = "failed"
        try:
            answer = super().get(path, **query)
            result = "ok"
        except EngineFault:
            result = "refused"
            raise
        finally:
            self._requests.labels(kind_of(path), result).inc()
        return answer


def kind_of(path: str) -> str:
    """What a request asks for, without the ids: `clusters/affinitygroups` of all clusters alike."""
    return "/".join(path.strip("/").split("/")[::2])


#: For log-outs; an engine that hangs forgets the sessions by itself.
_LAST_SECONDS = 1.5


@contextmanager
def connected(settings: EngineSettings, requests: Counter) -> Iterator[EngineConnection]:
    """Give a connection for all loops, and log out at the end, unless the engine keeps us waiting."""
    connection = CountedConnection(settings, requests)
    try:
        yield connection
    finally:
        connection.end()
        wait([in_background(connection.close)], _LAST_SECONDS)
