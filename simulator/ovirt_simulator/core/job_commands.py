"""Jobs that clients open for work of their own, and end.

Source: the engine's AddExternalJobCommand and EndExternalJobCommand.
"""

from __future__ import annotations

from msgspec.structs import replace

from .backend import Backend
from .entities import ADMIN, Caller, Job
from .event_codes import EventCode
from .rejections import existing


class JobCommands:
    """Commands on external jobs."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._jobs = backend.jobs

    def add(self, description: str, *, caller: Caller = ADMIN) -> Job:
        """Open a job."""
        with self._backend.lock:
            job = replace(self._jobs.start(description, caller), external=True)
            self._jobs.by_id[job.id] = job
            words = {"description": description}
            self._backend.audit_log.log(EventCode.USER_ADD_EXTERNAL_JOB, caller, words=words)
            return job

    def end(self, job_id: str, *, success: bool) -> None:
        """Close a job; raises `NotFound`."""
        with self._backend.lock:
            self._jobs.end(existing(self._jobs.by_id, job_id), "finished" if success else "failed")
