"""What ends or restarts a VM: what the engine lets through, what it skips, and what it refuses."""

from __future__ import annotations

import pytest

from tests.builders import host, vm
from tests.simulator.core import engines


@pytest.mark.parametrize(
    ("command", "reported"),
    [
        ("stop", "VM v is already Down, Stop VM was skipped. User: admin@internal-authz."),
        ("shutdown", "VM v is already Down, Shutdown VM was skipped. User: admin@internal-authz."),
    ],
)
def test_ending_what_is_down_succeeds_and_does_nothing(command: str, reported: str) -> None:
    engine = engines.engine(host("h"), vm("v"))
    job = getattr(engine.vms, command)("v")
    (event,) = engine.queries.events()
    assert (event.code, event.severity, event.description) == (254, "normal", reported)
    done = engine.queries.job(job.id)
    assert done is not None
    assert (done.status, engines.where(engine, "v")) == ("finished", ("down", None))


@pytest.mark.parametrize("command", ["stop", "shutdown"])
def test_ending_what_is_suspended_forgets_its_memory(command: str) -> None:
    engine = engines.engine(host("h"), vm("v", status="suspended"))
    getattr(engine.vms, command)("v")
    assert engines.where(engine, "v") == ("down", None)
    assert engines.codes(engine) == [111]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("saving_state", "VM is in saving/restoring state"),
        ("restoring_state", "VM is in saving/restoring state"),
        ("image_locked", "VM is not running"),
        ("unknown", "VM is not running"),
    ],
)
def test_ending_is_refused_in_other_statuses(status: str, words: str) -> None:
    engine = engines.engine(host("h"), vm("v", "h", status=status))
    for command in (engine.vms.stop, engine.vms.shutdown):
        refusal = engines.refused(command, "v")
        assert refusal.http_status == 409
        assert words in refusal.detail
    assert not [job for job in engine.queries.jobs() if job.description.startswith(("Pow", "Shut"))]


@pytest.mark.parametrize(("command", "code"), [("reboot", 157), ("reset", 221)])
def test_a_vm_restarts_where_it_is(command: str, code: int) -> None:
    engine = engines.engine(host("h"), vm("v", "h"))
    job = getattr(engine.vms, command)("v")
    assert engines.where(engine, "v") == ("reboot_in_progress", "h")
    engine.advance(10)
    assert engines.where(engine, "v") == ("up", "h")
    assert engines.codes(engine) == [code], "nothing reports that it is up again"
    done = engine.queries.job(job.id)
    assert done is not None
    assert done.status == "finished"


def test_what_does_not_run_does_not_restart() -> None:
    engine = engines.engine(host("h"), vm("down"), vm("waits", "h", status="wait_for_launch"))
    refusal = engines.refused(engine.vms.reboot, "down")
    assert refusal.detail == "[Cannot restart VM because the VM is in Down status.]"
    assert engines.refused(engine.vms.reset, "waits").http_status == 409
    assert engines.refused(engine.vms.reset, "nobody").http_status == 400
