"""Jobs, the engine's own and those that clients open."""

from __future__ import annotations

from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import event as render
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.search import searched


def list_jobs(call: Call) -> list[str]:
    found = searched(call, "jobs", call.queries.jobs())
    return [render.job(job, call.links("jobs", job.id)) for job in found]


def get_job(call: Call, job_id: str) -> str:
    return render.job(present(call.queries.job(job_id)), call.links("jobs", job_id))
