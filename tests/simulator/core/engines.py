"""Starts engines for tests: prompt ones, on a clock that stands until a test moves it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from ovirt_placement.model import Snapshot
from ovirt_simulator.core import loading
from ovirt_simulator.core.affinity import find_conflicts, flat
from ovirt_simulator.core.backend import PROMPT, Backend
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Host, Job, Vm
from ovirt_simulator.core.messages import EventCode, Rejected
from ovirt_simulator.core.state import State
from tests import builders

START = datetime(2030, 1, 1, tzinfo=UTC)
#: What the engine calls each type of event.
EVENT_NAMES = {getattr(EventCode, name): name for name in dir(EventCode) if name.isupper()}


def engine(*parts: builders.Part, **options: Any) -> Engine:
    return Engine.from_snapshot(builders.snapshot(*parts), **{"clock": START, "settings": PROMPT, **options})


def backend(snapshot: Snapshot, seed: int = 0) -> Backend:
    """What stands behind an engine that holds a state and does nothing."""
    found = Backend(clock=START, seed=seed, settings=PROMPT, background=lambda action: action())
    loading.load(found.state, snapshot, START)
    return found


def conflicts(state: State) -> list[dict[str, Any]]:
    """All conflicts of affinity groups, with names of groups and ids of VMs and hosts."""
    return [
        {
            "type": EVENT_NAMES[one.code],
            "savable": one.code.severity == "warning",
            **{name: sorted(getattr(one, name)) for name in ("groups", "vms", "hosts", "negative_vms")},
        }
        for one in find_conflicts([flat(state, group) for group in state.groups.values()])
    ]


def vm(engine: Engine, vm_id: str) -> Vm:
    return engine.queries.state.vms[vm_id]


def host(engine: Engine, host_id: str) -> Host:
    return engine.queries.state.hosts[host_id]


def where(engine: Engine, vm_id: str) -> tuple[str, str | None]:
    """Status and host, as the REST API shows them."""
    found = vm(engine, vm_id)
    return found.status, found.host


def shown(engine: Engine, *names: str) -> list[str]:
    """The status of each of these hosts, and of each of these VMs with its host, if it has one."""
    state = engine.queries.state
    hosts = {known.id: known.status for known in state.hosts.values()}
    vms = {known.id: " ".join(filter(None, (known.status, known.host))) for known in state.vms.values()}
    return [{**hosts, **vms}[name] for name in names]


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
