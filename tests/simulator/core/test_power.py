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
    done = engines.job(engine, job.id)
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
