"""Jobs, the engine's own and those that clients open; and the steps of these."""

from __future__ import annotations

from collections.abc import Callable

from werkzeug import Response

from ovirt_simulator.core.entities import Job
from ovirt_simulator.core.job_commands import Step
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import event as render
from ovirt_simulator.http.resources.actions import act
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.resources.searching import searched
from ovirt_simulator.http.users import Permit


def list_jobs(call: Call) -> list[str]:
    found = searched(call, "JOB", call.queries.jobs())
    return [render.job(job, call.links("jobs", job.id)) for job in found]


def get_job(call: Call, job_id: str) -> str:
    return render.job(present(call.queries.job(job_id)), call.links("jobs", job_id))


def post_job(call: Call) -> Response:
    description = call.body("job").text("description")
    if not description:
        raise incomplete("Job", "description")
    call.need(Permit.INJECT_EXTERNAL_TASKS)
    job = call.engine.jobs.add(description, caller=call.caller)
    return answers.document(render.job(job, call.plain_links("jobs", job.id)), 201)


def end_job(call: Call, job_id: str) -> Response:
    return _act(call, job_id, lambda body: call.engine.jobs.end(job_id, success=_succeeded(body)))


def clear_job(call: Call, job_id: str) -> Response:
    return _act(call, job_id, lambda _: call.engine.jobs.clear(job_id))


def list_steps(call: Call, job_id: str) -> list[str]:
    present(call.queries.job(job_id))
    return [_render_step(call, step) for step in call.engine.jobs.steps(job_id)]


def get_step(call: Call, job_id: str, step_id: str) -> str:
    steps = {step.id: step for step in call.engine.jobs.steps(job_id)}
    return _render_step(call, present(steps.get(step_id)))


def post_step(call: Call, job_id: str) -> Response:
    body = call.body("step")
    kind, description = body.text("type"), body.text("description")
    if not kind or not description:
        raise incomplete("Step", *(["description"] if kind else ["type"]))
    call.need(Permit.INJECT_EXTERNAL_TASKS)
    step = call.engine.jobs.add_step(job_id, description, kind)
    return answers.document(_render_step(call, step), 201)


def end_step(call: Call, job_id: str, step_id: str) -> Response:
    return _act(call, job_id, lambda body: call.engine.jobs.end_step(step_id, success=_succeeded(body)))


def _succeeded(body: Body) -> bool:
    return body.boolean("succeeded") is not False


def _render_step(call: Call, step: Step) -> str:
    return render.step(step, call.links("jobs", step.job, "steps", step.id))


def _act(call: Call, job_id: str, command: Callable[[Body], Job]) -> Response:
    return act(call, Permit.INJECT_EXTERNAL_TASKS, "job", "", command)
