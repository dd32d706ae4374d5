"""Starts engines for tests: prompt ones, on a clock that stands until a test moves it."""

from collections.abc import Callable
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import pytest

from ovirt_placement.model import Snapshot
from ovirt_simulator.core import loading
from ovirt_simulator.core.affinity import find_conflicts, flat
from ovirt_simulator.core.backend import PROMPT, Backend, MigrationFault, UpgradeFault
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


def play(made: Engine, *story: str) -> None:
    """Carry out a story: steps with `;` between them.

    A number lets that many seconds pass. `v is up h2` (or `... or up h3`), `job is failed` (of the first
    command), `events 62 63` (which `...` leaves open at an end), `has 62`, `lacks 62`, `restarted a b` and
    `no_job Stop` (by the first letters of what it says) are checks. `fault hang identity=v` and
    `upgrade_fault fail` expect one. All else is a command, such as `vms.migrate v host_id=h2`; one after
    `refused 409` fails so, with the words after `: `.
    """
    ordered: list[Any] = []
    for step in map(str.strip, "; ".join(story).split(";")):
        first, *rest = step.split()
        if first.replace(".", "", 1).isdigit():
            made.advance(float(first))
        elif rest[:1] == ["is"]:
            name, _, status = step.partition(" is ")
            found = job(made, ordered[0].id).status if name == "job" else shown(made, name)[0]
            assert found in status.split(" or "), (step, found)
        elif first in _CHECKS:
            assert _CHECKS[first](made, rest), (step, codes(made), restarted(made))
        elif first in _FAULTS:
            kind, *options = map(_option, rest)
            made.faults.expect(_FAULTS[first](**dict([kind])), **dict(options))
        elif first == "refused":
            command, _, words = " ".join(rest[1:]).partition(": ")
            refusal = refused(_carry_out, made, command)
            assert refusal.http_status == int(rest[0]), (step, refusal)
            assert words in refusal.detail, (step, refusal.detail)
        else:
            ordered.append(_carry_out(made, step))


def restarted(made: Engine) -> list[str]:
    """The VMs that the engine began to restart, in this order; it reports each again when it is up."""
    found = [event.vm.id for event in reversed(made.queries.events()) if event.code == 506 and event.vm]
    return list(dict.fromkeys(filter(None, found)))


def _has_events(made: Engine, wanted: list[str]) -> bool:
    found = list(map(str, codes(made)))
    if "..." in (wanted[0], wanted[-1]):
        number = len(wanted) - 1
        return found[-number:] == wanted[1:] if wanted[0] == "..." else found[:number] == wanted[:-1]
    return found == wanted


_FAULTS: dict[str, Any] = {"fault": MigrationFault, "upgrade_fault": UpgradeFault}
_CHECKS: dict[str, Callable[[Engine, list[str]], bool]] = {
    "events": _has_events,
    "has": lambda made, wanted: {*wanted} <= {*map(str, codes(made))},
    "lacks": lambda made, wanted: {*wanted}.isdisjoint(map(str, codes(made))),
    "restarted": lambda made, wanted: restarted(made) == wanted,
    "no_job": lambda made, wanted: not [job for job in made.queries.jobs() if job.description[:4] in wanted],
}


def _carry_out(made: Engine, command: str) -> Any:
    name, *words = command.split()
    options = dict(_option(word) for word in words if "=" in word)
    return attrgetter(name)(made)(*(word for word in words if "=" not in word), **options)


def _option(word: str) -> tuple[str, Any]:
    name, _, value = word.partition("=")
    return name, {"": True, "no": False}.get(value, int(value) if value.isdigit() else value)
