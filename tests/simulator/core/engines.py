"""Starts engines for tests: prompt ones, on a clock that stands until a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Host, Job, Vm
from ovirt_simulator.core.events import EventCode
from ovirt_simulator.core.rejections import Rejected
from ovirt_simulator.core.settings import PROMPT
from tests import builders

START = datetime(2030, 1, 1, tzinfo=UTC)
#: What the engine calls each type of event.
EVENT_NAMES = {getattr(EventCode, name): name for name in dir(EventCode) if name.isupper()}


def engine(*parts: builders.Part, **options: Any) -> Engine:
    return Engine.from_snapshot(builders.snapshot(*parts), **{"clock": START, "settings": PROMPT, **options})


def vm(engine: Engine, vm_id: str) -> Vm:
    found = engine.queries.vm(vm_id)
    assert found is not None
    return found


def host(engine: Engine, host_id: str) -> Host:
    found = engine.queries.host(host_id)
    assert found is not None
    return found


def where(engine: Engine, vm_id: str) -> tuple[str, str | None]:
    """Status and host, as the REST API shows them."""
    found = vm(engine, vm_id)
    return found.status, found.host


def codes(engine: Engine) -> list[int]:
    """Codes of the visible events, oldest first."""
    return [event.code for event in reversed(engine.queries.events())]


def refused(command: Any, *arguments: Any, **options: Any) -> Rejected:
    """Give the refusal of a command that must be refused."""
    with pytest.raises(Rejected) as caught:
        command(*arguments, **options)
    return caught.value


def job(engine: Engine, job_id: str) -> Job:
    return next(job for job in engine.queries.jobs() if job.id == job_id)
