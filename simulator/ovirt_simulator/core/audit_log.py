"""The simulated clock, and what the engine keeps of the past: jobs, and events, of which some show late."""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import count
from random import Random
from types import MappingProxyType

from msgspec.structs import replace

from ovirt_simulator.core.entities import (
    BLANK_TEMPLATE,
    Caller,
    Cluster,
    DataCenter,
    Event,
    Host,
    Job,
    Reference,
    Vm,
)
from ovirt_simulator.core.events import EventType
from ovirt_simulator.core.settings import Settings

Action = Callable[[], object]


class Timeline:
    """A clock that moves only when moved, and a queue of actions in the order they fall due."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._elapsed = 0.0
        self._order = count()
        self._queue: list[tuple[float, int, Action]] = []

    @property
    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._elapsed

    def after(self, seconds: float, action: Action) -> None:
        """Let the action fall due this many seconds from now, after all that is due at the same time."""
        heapq.heappush(self._queue, (self._elapsed + seconds, next(self._order), action))

    def next_due(self, until: float) -> Action | None:
        """Move to the next action that is due until then and take it; None moves all the way."""
        if self._queue and self._queue[0][0] <= until:
            due, _, action = heapq.heappop(self._queue)
            self._elapsed = max(self._elapsed, due)
            return action
        self._elapsed = max(self._elapsed, until)
        return None


class Jobs:
    """All jobs, oldest first."""

    def __init__(self, timeline: Timeline, random: Random) -> None:
        self._timeline = timeline
        self._random = random
        self.by_id: dict[str, Job] = {}

    def start(self, description: str, caller: Caller) -> Job:
        """Open a job for what the caller asked for."""
        job = Job(
            id=str(uuid.UUID(int=self._random.getrandbits(128), version=4)),
            description=description,
            status="started",
            started=self._timeline.now,
            correlation_id=caller.correlation_id,
        )
        self.by_id[job.id] = job
        return job

    def note(self, description: str, caller: Caller, status: str = "finished") -> Job:
        """Remember a job that has ended at once."""
        job = self.start(description, caller)
        self.end(job, status)
        return job

    def end(self, job: Job | None, status: str) -> None:
        """Close the job, if there is one and it is still open: finished, failed or aborted."""
        if job is not None and self.by_id[job.id].status == "started":
            self.by_id[job.id] = replace(self.by_id[job.id], status=status, ended=self._timeline.now)


NO_WORDS: Mapping[str, object] = MappingProxyType({})


class AuditLog:
    """All events. An id is given before its transaction ends, so a lower one may show after a higher."""

    def __init__(self, timeline: Timeline, random: Random, settings: Settings) -> None:
        self._timeline = timeline
        self._random = random
        self._settings = settings
        self._events: dict[int, Event] = {}
        self._silent_until: dict[tuple[object, ...], datetime] = {}

    def log(
        self,
        code: EventType,
        caller: Caller,
        *,
        vm: Vm | None = None,
        host: Host | None = None,
        cluster: Cluster | None = None,
        data_center: DataCenter | None = None,
        words: Mapping[str, object] = NO_WORDS,
    ) -> Event | None:
        """Log an event whose text has the names of what it speaks of, and these words.

        Returns None when the same event was logged within the code's flood interval.
        """
        if self._floods(code, vm, host, cluster, words):
            return None
        names = {
            "user": caller.user,
            "vm": vm.name if vm else "<UNKNOWN>",
            "host": host.name if host else "<UNKNOWN>",
            "cluster": cluster.name if cluster else "<UNKNOWN>",
        }
        return self.add(
            Event(
                id=0,
                code=code.number,
                severity=code.severity,
                time=self._timeline.now,
                visible=self._timeline.now,
                description=code.text.format(**{**names, **words}),
                correlation_id=caller.correlation_id,
                user=caller.reference,
                vm=reference(vm),
                host=reference(host),
                cluster=reference(cluster),
                data_center=reference(data_center),
                template=None if vm is None else template_of(vm),
            )
        )

    def add(self, event: Event, *, prompt: bool = False) -> Event:
        """Give the event the next id and the moment it shows; a prompt one shows at once."""
        late = 0.0
        if not prompt and self._random.random() < self._settings.late_event_probability:
            late = self._random.uniform(0.0, self._settings.late_event_seconds)
        visible = self._timeline.now + timedelta(seconds=late)
        event = replace(event, id=len(self._events) + 1, visible=visible)
        self._events[event.id] = event
        return event

    def visible(self) -> tuple[Event, ...]:
        """What a list shows now: newest id first, without dismissed events."""
        now = self._timeline.now
        return tuple(
            event for event in reversed(self._events.values()) if event.visible <= now and not event.dismissed
        )

    def dismiss(self, event_id: int) -> None:
        self._events[event_id] = replace(self._events[event_id], dismissed=True)

    def has_external(self, origin: str, custom_id: int) -> bool:
        """Whether there has ever been an external event with this origin and custom id."""
        return any((one.origin, one.custom_id) == (origin, custom_id) for one in self._events.values())

    def _floods(self, code: EventType, *about: object) -> bool:
        if not code.flood_seconds:
            return False
        key = (code.number, *map(str, about))
        now = self._timeline.now
        if self._silent_until.get(key, now) > now:
            return True
        self._silent_until[key] = now + timedelta(seconds=code.flood_seconds)
        return False


def reference(record: Vm | Host | Cluster | DataCenter | None) -> Reference | None:
    return None if record is None else Reference(id=record.id, name=record.name)


def template_of(vm: Vm) -> Reference:
    """Give the template that a VM was made of; the state file knows no names of templates."""
    return Reference(id=vm.template) if vm.template else Reference(id=BLANK_TEMPLATE, name="Blank")
