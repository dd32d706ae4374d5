"""Events, jobs and options: what the engine remembers of itself."""

from __future__ import annotations

from ovirt_simulator.http.resources import events, jobs, options
from ovirt_simulator.http.routes.table import Table

TABLE = Table(
    lists={
        "/events": ("events", events.list_events),
        "/jobs": ("jobs", jobs.list_jobs),
        "/jobs/<job_id>/steps": ("steps", jobs.list_steps),
    },
    reads={
        "/events/<event_id>": events.get_event,
        "/jobs/<job_id>": jobs.get_job,
        "/jobs/<job_id>/steps/<step_id>": jobs.get_step,
        "/options/<name>": options.get_option,
    },
    posts={
        "/jobs": jobs.post_job,
        "/jobs/<job_id>/end": jobs.end_job,
        "/jobs/<job_id>/clear": jobs.clear_job,
        "/jobs/<job_id>/steps": jobs.post_step,
        "/jobs/<job_id>/steps/<step_id>/end": jobs.end_step,
        "/events": events.post_event,
        "/events/undelete": events.undelete,
    },
    deletes={
        "/events/<event_id>": events.delete_event,
    },
)
