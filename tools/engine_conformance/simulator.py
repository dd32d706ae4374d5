"""The simulator's answers: those of its copies of the engine's units."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from msgspec.structs import replace

from ovirt_placement.model import SchedulingPolicy, Snapshot
from ovirt_simulator.core import affinity
from ovirt_simulator.core.affinity import find_conflicts, flat
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import EventCode, Rejected
from ovirt_simulator.scheduler.external import ExternalScheduler, ExternalUnits
from ovirt_simulator.scheduler.filters import Filter, Request, cpu_overloaded, note_load
from ovirt_simulator.scheduler.placing import Scheduler
from ovirt_simulator.scheduler.weights import Record, Weight, best_host
from tests.simulator.scheduler.proxy import Proxy, reply, running_proxy
from tools.engine_conformance.questions import Question

_START = datetime(2030, 1, 1, tzinfo=UTC)
#: For how long hosts are busy where a question does not say it, as to the engine's side.
_LONG_MINUTES = 100


def _asked(question: Question) -> tuple[Snapshot, list[Any], list[Any]]:
    snapshot = question.snapshot
    return (
        snapshot,
        [snapshot.vm_by_id[vm] for vm in question.vms],
        [snapshot.host_by_id[host] for host in question.hosts],
    )


def accepted(refuse: Filter) -> Callable[[Question], Any]:
    """The hosts that a filter leaves."""

    def answer(question: Question) -> list[str]:
        refused = refuse(*_asked(question))
        return [host for host in question.hosts if host not in refused]

    return answer


def scores(weigh: Weight) -> Callable[[Question], Any]:
    """What a weight says of hosts."""
    return lambda question: dict(weigh(*_asked(question)))


def engine_of(question: Question) -> Engine:
    """An engine that stands still in the state."""
    return _as_asked(Engine.from_snapshot(question.snapshot, clock=_START, settings=PROMPT), question)


def _as_asked(engine: Engine, question: Question) -> Engine:
    """Without a host that manages storage, if none does, and as long busy as the question says."""
    state, told = engine._backend.state, question.request.get("told", {})
    for host in question.snapshot.hosts:
        state.put(state.hosts, replace(state.hosts[host.id], spm=host.spm, overloaded_since=None))
    note_load(engine._backend)
    for host in tuple(state.hosts.values()):
        if host.overloaded_since is not None:
            minutes = told.get(host.id, {}).get("overloaded_minutes", _LONG_MINUTES)
            since = _START - timedelta(minutes=minutes)
            state.put(state.hosts, replace(host, overloaded_since=since))
    return engine


def not_overloaded(question: Question) -> list[str]:
    """The hosts that are not refused for the use of their CPUs."""
    state = engine_of(question)._backend.state
    hosts: list[str] = accepted(partial(cpu_overloaded, state, _START))(question)
    return hosts


def best_by_rank(question: Question) -> str | None:
    """The host that the rank selector chooses."""
    records = [Record(*record) for record in question.request["records"]]
    return best_host(question.request["hosts"], records, dict(question.request["units"]))


def conflicts(question: Question) -> list[dict[str, Any]]:
    state = engine_of(question)._backend.state
    groups = state.groups_of(question.request["cluster"])
    ids = {group.name: group.id for group in groups}
    names = {id(getattr(EventCode, name)): name for name in dir(EventCode) if name.isupper()}
    return [
        {
            "type": names[id(one.code)],
            "savable": one.code.severity == "warning",
            "groups": [ids[name] for name in one.groups],
            "vms": list(one.vms),
            "hosts": list(one.hosts),
            "negative_vms": list(one.negative_vms),
        }
        for one in find_conflicts([flat(state, group) for group in groups])
    ]


def closure(question: Question) -> list[str]:
    """The VMs on its host that a VM takes along."""
    return list(affinity.closure(engine_of(question)._backend.state, question.vms[0]))


def broken(question: Question) -> dict[str, bool]:
    state = engine_of(question)._backend.state
    return {group.id: affinity.is_broken(state, group) for group in state.groups.values()}


def schedule(question: Question) -> dict[str, Any]:
    """What validation leaves of hosts, and the best of them."""
    backend = engine_of(question)._backend
    scheduler = Scheduler(backend, ExternalUnits(backend, None))
    return {"hosts": _left(scheduler, question), "best": _best(scheduler, question)}


def _request(question: Question) -> Request:
    return Request(vm_ids=question.vms, blacklist=frozenset(question.request.get("blacklist", ())))


def _left(scheduler: Scheduler, question: Question) -> list[str]:
    try:
        return list(scheduler.validate(_request(question), "run"))
    except Rejected:
        return []


def _best(scheduler: Scheduler, question: Question) -> str | None:
    try:
        return scheduler.schedule(_request(question), lambda host: host)
    except Rejected:
        return None


def schedule_externally(question: Question) -> dict[str, Any]:
    """Scheduling with external units, over XML-RPC, by a proxy that answers what the question says."""
    policy = SchedulingPolicy(tuple(question.request["filters"]), dict(question.request["weights"]))
    snapshot = question.snapshot
    clusters = tuple(replace(cluster, scheduling_policy=policy) for cluster in snapshot.clusters)
    with running_proxy() as proxy:
        _answer_as(proxy, question.request)
        engine = Engine.from_snapshot(
            replace(snapshot, clusters=clusters), clock=_START, settings=PROMPT, proxy=proxy.url
        )
        _as_asked(engine, question)
        proxy.calls.clear()
        external = ExternalUnits(engine._backend, ExternalScheduler(proxy.url))
        best = _best(Scheduler(engine._backend, external), question)
        return {"best": best, "calls": [_told(call) for call in proxy.calls]}


def _answer_as(proxy: Proxy, request: dict[str, Any]) -> None:
    refused = request["refused"]
    proxy.discover = lambda: {
        "filters": {name: ["", ""] for name in request["filters"]},
        "scores": {name: ["", ""] for name, _ in request["weights"]},
        "balance": {},
    }
    proxy.run_filters = lambda names, hosts, *_: reply([host for host in hosts if host not in refused])
    proxy.run_cost_functions = lambda names, hosts, *_: reply(
        [entry for entry in request["scores"] if entry[0] in hosts]
    )


def _told(call: tuple[Any, ...]) -> list[Any]:
    method, names, hosts, vm, _ = call
    return [method, names, hosts, vm] if method == "runFilters" else [method, hosts, vm]
