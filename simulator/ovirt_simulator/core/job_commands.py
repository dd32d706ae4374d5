"""Jobs that clients open for work of their own, with the steps of it, and end.

Source: the engine's AddExternalJobCommand, EndExternalJobCommand, their like for steps, and ExecutionHandler.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from . import refusals
from .backend import Backend
from .entities import ADMIN, Caller, Job, Record
from .event_codes import EventCode


class Step(Record, frozen=True):
    id: str
    #: The id of the job.
    job: str
    description: str
    #: The REST API's StepEnum: executing, validating, finalizing, unknown ...
    type: str
    #: Within the job, from 0.
    number: int
    #: started, finished or failed.
    status: str
    started: datetime
    ended: datetime | None = None


class JobCommands:
    """Commands on external jobs; all but `add` raise `Rejected` for what is not there or not external."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._jobs = backend.jobs
        self._steps: dict[str, Step] = {}

    def add(self, description: str, *, caller: Caller = ADMIN) -> Job:
        """Open a job."""
        with self._backend.lock:
            job = replace(self._jobs.start(description, caller), external=True)
            self._jobs.by_id[job.id] = job
            words = {"description": description}
            self._backend.audit_log.log(EventCode.USER_ADD_EXTERNAL_JOB, caller, words=words)
            return job

    def end(self, job_id: str, *, success: bool) -> Job:
        """Close a job, with the steps that are still open."""
        with self._backend.lock:
            job = self._external(job_id, "clear", "External Job")
            status = "finished" if success else "failed"
            self._jobs.end(job, status)
            for step in self.steps(job_id):
                if step.status == "started":
                    self._close(step, status)
            return job

    def clear(self, job_id: str) -> Job:
        """Let the engine forget a job in time, which takes longer than anything here lasts."""
        with self._backend.lock:
            return self._external(job_id, "clear", "External Job")

    def add_step(self, job_id: str, description: str, kind: str) -> Step:
        """Open a step of a job."""
        with self._backend.lock:
            self._external(job_id, "add", "External Job")
            step = Step(
                id=self._backend.new_id(),
                job=job_id,
                description=description,
                type=kind,
                number=len(self.steps(job_id)),
                status="started",
                started=self._backend.now,
            )
            self._steps[step.id] = step
            return step

    def end_step(self, step_id: str, *, success: bool) -> Job:
        """Close a step; one that failed ends its job."""
        with self._backend.lock:
            step = self._steps.get(step_id)
            if step is None:
                raise refusals.bad_parameters(
                    "ACTION_TYPE_NO_STEP", "Cannot end External Step. Step not found."
                )
            self._close(step, "finished" if success else "failed")
            return self._jobs.by_id[step.job] if success else self.end(step.job, success=False)

    def steps(self, job_id: str) -> tuple[Step, ...]:
        with self._backend.lock:
            return tuple(step for step in self._steps.values() if step.job == job_id)

    def _close(self, step: Step, status: str) -> None:
        self._steps[step.id] = replace(step, status=status, ended=self._backend.now)

    def _external(self, job_id: str, action: str, kind: str) -> Job:
        job = self._jobs.by_id.get(job_id)
        if job is None:
            raise refusals.bad_parameters("ACTION_TYPE_NO_JOB", f"Cannot {action} {kind}. Job not found.")
        if not job.external:
            raise refusals.bad_parameters(
                "ACTION_TYPE_NOT_EXTERNAL",
                f"Cannot {action} {kind}. External steps can be added only to external jobs or steps.",
            )
        return job
