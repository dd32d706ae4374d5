"""Work that the engine hears of: jobs of clients, upgrades of clusters, checks for updates; its options."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server
from tests.simulator.core.engines import codes
from tests.simulator.http.plain import request


def test_a_job_with_its_steps(sdk: Connection, engine: Engine) -> None:
    jobs = sdk.system_service().jobs_service()
    job = jobs.add(types.Job(description="patching", external=True, status=types.JobStatus.STARTED))
    assert (job.external, job.status) == (True, types.JobStatus.STARTED)
    assert codes(engine) == [11000]
    service = jobs.job_service(job.id)
    steps = service.steps_service()
    first, second = (
        steps.add(types.Step(description=name, type=types.StepEnum.EXECUTING)) for name in ("one", "two")
    )
    assert [(step.description, step.number) for step in steps.list()] == [("one", 0), ("two", 1)]
    steps.step_service(first.id).end(succeeded=True)
    assert steps.step_service(first.id).get().status == types.StepStatus.FINISHED
    assert service.get().status == types.JobStatus.STARTED
    steps.step_service(second.id).end(succeeded=False)
    assert service.get().status == types.JobStatus.FAILED, "with any of its steps"
    service.clear()


def test_a_job_takes_its_open_steps_along(sdk: Connection) -> None:
    jobs = sdk.system_service().jobs_service()
    service = jobs.job_service(jobs.add(types.Job(description="patching")).id)
    step = service.steps_service().add(types.Step(description="one", type=types.StepEnum.EXECUTING))
    service.end(succeeded=True)
    assert service.get().status == types.JobStatus.FINISHED
    assert service.steps_service().step_service(step.id).get().status == types.StepStatus.FINISHED


def test_jobs_of_others_are_not_to_be_ended(sdk: Connection) -> None:
    system = sdk.system_service()
    system.vms_service().vm_service("spare").start()
    jobs = system.jobs_service()
    own = next(job for job in jobs.list() if job.description == "Launching VM spare")
    with pytest.raises(Error, match="External steps can be added only to external jobs"):
        jobs.job_service(own.id).end()
    with pytest.raises(Error, match="Job not found"):
        jobs.job_service("nowhere").end()
    with pytest.raises(Error, match=r"Job \[description\] required"):
        jobs.add(types.Job())


def upgrade(server: Server, action: str, correlation_id: str = "a") -> tuple[int, str | None]:
    body = f"<action><upgrade_action>{action}</upgrade_action>{PERCENT}</action>"
    headers = {"Correlation-Id": correlation_id}
    reply = request(f"{server.api_url}/clusters/cluster1/upgrade", "POST", body, headers=headers)
    return reply.status, reply.xml.findtext("fault/detail")


PERCENT = "<upgrade_percent_complete>40</upgrade_percent_complete>"


def test_a_cluster_is_upgraded(server: Server, sdk: Connection, engine: Engine) -> None:
    service = sdk.system_service().clusters_service().cluster_service("cluster1")

    def shown() -> tuple[bool, int]:
        cluster = service.get()
        return cluster.upgrade_in_progress, cluster.upgrade_percent_complete

    assert upgrade(server, "update_progress")[1] == (
        "[Cannot update progress, cluster upgrade has not been started.]"
    )
    assert upgrade(server, "start") == (200, None)
    assert shown() == (True, 0)
    assert engine.snapshot().clusters[0].upgrade_mode
    assert upgrade(server, "update_progress") == (200, None)
    assert shown() == (True, 40)
    status, detail = upgrade(server, "update_progress", correlation_id="b")
    assert status == 400
    assert detail is not None
    assert "correlation id does not match" in detail
    # Only one can be under way; whose the last one was stays.
    status, detail = upgrade(server, "start", correlation_id="b")
    assert (status, detail) == (400, "[Failed to set upgrade running flag on cluster 'cluster1'.]")
    assert upgrade(server, "finish") == (200, None)
    assert shown() == (False, 0)
    assert service.get().upgrade_correlation_id == "a"
    assert codes(engine) == [892, 896, 893, 894]
    assert request(f"{server.api_url}/clusters/nowhere/upgrade", "POST", "<action/>").status == 404


def test_a_host_is_checked_for_updates(sdk: Connection, engine: Engine) -> None:
    hosts = sdk.system_service().hosts_service()
    hosts.host_service("host1").upgrade_check()
    assert codes(engine) == [884]
    engine.advance(10)
    event = engine.queries.events()[0]
    assert (event.code, event.host and event.host.id) == (885, "host1")
    assert hosts.host_service("host1").get().update_available is False
    engine.hosts.fail("host2")
    engine.advance(10)
    with pytest.raises(Error, match="Valid Host statuses for upgrade check") as caught:
        hosts.host_service("host2").upgrade_check()
    assert caught.value.code == 409


def test_an_option(sdk: Connection) -> None:
    """An engine shows few of them; those of external schedulers are for `engine-config` alone."""
    options = sdk.system_service().options_service()
    option = options.option_service("SchedulerAllowOverBooking").get()
    assert [(value.version, value.value) for value in option.values] == [("general", "false")]
    with pytest.raises(NotFoundError):
        options.option_service("ExternalSchedulerEnabled").get()
    with pytest.raises(Error, match="does not know the option 'Other'") as caught:
        options.option_service("Other").get()
    assert caught.value.code == 501


def test_what_is_done_to_vms_and_hosts_is_known_by_its_correlation_id(sdk: Connection) -> None:
    system = sdk.system_service()
    spare = system.vms_service().vm_service("spare")
    host = system.hosts_service().host_service("host3")

    def found(correlation_id: str) -> list[str]:
        jobs = system.jobs_service().list(search=f"correlation_id={correlation_id}")
        return [job.description for job in jobs]

    spare.update(types.Vm(comment="x"), query={"correlation_id": "edit"})
    spare.start(query={"correlation_id": "start"})
    spare.stop(query={"correlation_id": "stop"})
    host.activate(query={"correlation_id": "activate"})
    system.tags_service().add(types.Tag(name="new"), query={"correlation_id": "tag"})
    assert found("edit") == ["Editing VM spare properties"]
    assert found("start") == ["Launching VM spare"]
    assert found("stop") == ["Stopping VM spare"]
    assert found("activate") == ["Invoking Activate Host gamma"]
    assert found("tag") == [], "an engine keeps no jobs of tags, groups, labels and clusters"
