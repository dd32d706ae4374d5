"""Jobs: what a command that takes time is known by while it runs and after it."""

from __future__ import annotations

import uuid
from random import Random

from msgspec.structs import replace

from .entities import Caller, Job
from .timeline import Timeline


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

    def note(self, description: str, caller: Caller) -> None:
        """Remember a job that is done at once."""
        self.end(self.start(description, caller), "finished")

    def end(self, job: Job | None, status: str) -> None:
        """Close the job, if there is one and it is still open: finished, failed or aborted."""
        if job is not None and self.by_id[job.id].status == "started":
            self.by_id[job.id] = replace(self.by_id[job.id], status=status, ended=self._timeline.now)
