"""Our answers: those of the product's units, of its copies of the engine's, and of the simulator's copies."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from msgspec.structs import replace

from ovirt_enforcer.policy_actors import SimulatedCluster, engine_candidates, engine_target
from ovirt_placement.model import SchedulingPolicy, Snapshot
from ovirt_placement.rules.affinity.conflicts import find_conflicts
from ovirt_placement.rules.affinity.groups import unify
from ovirt_placement.rules.elements.ranks import order_hosts
from ovirt_placement.rules.elements.verdict import Request, Verdict, Weight, whole_number
from ovirt_placement.rules.failover import check
from ovirt_placement.rules.load import LoadLimits, balance_load, overloaded
from ovirt_simulator.core import affinity
from ovirt_simulator.core.affinity import find_conflicts as find_collisions
from ovirt_simulator.core.affinity import flat
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import EventCode, Rejected
from ovirt_simulator.scheduler.external import ExternalScheduler, ExternalUnits
from ovirt_simulator.scheduler.filters import Filter, cpu_overloaded, note_load
from ovirt_simulator.scheduler.filters import Request as Placing
from ovirt_simulator.scheduler.placing import Scheduler
from ovirt_simulator.scheduler.weights import Record, best_host
from ovirt_simulator.scheduler.weights import Weight as EngineWeight
from tests.simulator.scheduler.proxy import Proxy, reply, running_proxy
from tools.engine_conformance.questions import Question


# -- The product's.
def request_of(question: Question) -> Request:
    return Request(vms=question.vms, candidate_hosts=question.hosts, parameters=question.parameters)


def accepted(filter_hosts: Callable[[Snapshot, Request], Iterable[Verdict]]) -> Callable[[Question], Any]:
    """The hosts that a filter accepts."""

    def answer(question: Question) -> list[str]:
        verdicts = filter_hosts(question.snapshot, request_of(question))
        return [verdict.host for verdict in verdicts if verdict.accepted]

    return answer


def scores(score: Callable[[Snapshot, Request], Mapping[str, int]]) -> Callable[[Question], Any]:
    """What a copy of one of the engine's weights says of hosts."""
    return lambda question: dict(score(question.snapshot, request_of(question)))


def ranks(rank_hosts: Callable[[Snapshot, Request], Iterable[Weight]]) -> Callable[[Question], Any]:
    """The ranks that a weight of ours gives to hosts."""

    def answer(question: Question) -> dict[str, int]:
        weights = rank_hosts(question.snapshot, request_of(question))
        return {weight.host: weight.rank for weight in weights}

    return answer


def best_by_rank(question: Question) -> str | None:
    """The host that the rank selector chooses."""
    weights: dict[str | None, dict[str, int]] = {}
    for unit, host, weight in question.request["records"]:
        of_unit = weights.setdefault(unit, {})
        of_unit[host] = of_unit.get(host, 0) + weight
    factors = dict(question.request["units"])
    return order_hosts(question.request["hosts"], weights, factors)[0].host


def unified(question: Question) -> list[tuple[str, ...]]:
    """What hard positive groups of the cluster tie together."""
    cluster, known = question.request["cluster"], question.snapshot.affinity_groups
    groups = (one for one in known if one.cluster == cluster and one.vms_rule.hard and one.vms_rule.positive)
    return [one.vms for one in unify(question.snapshot, groups)]


def enforcement(question: Question) -> list[str]:
    """The VMs that the simulation lets the engine move, in order."""
    simulated = SimulatedCluster(question.snapshot, question.request["cluster"])
    found = [
        vm
        for vm, hard in engine_candidates(simulated)
        if engine_target(question.snapshot, vm, simulated.hosts, hard=hard) is not None
    ]
    return list(dict.fromkeys(found))


def even_distribution_move(question: Question) -> dict[str, Any] | None:
    """The move that the copy of the engine's balance proposes."""
    snapshot, hosts = question.snapshot, question.hosts
    cluster = snapshot.cluster_by_id[question.request["cluster"]]
    parameters = cluster.scheduling_properties

    def number(name: str, default: int) -> int:
        return whole_number(parameters, name, default)

    default = LoadLimits()
    limits = LoadLimits(
        high_utilization=number("HighUtilization", default.high_utilization),
        max_free_memory_for_over_utilized=number("MaxFreeMemoryForOverUtilized", 0),
        min_free_memory_for_under_utilized=number("MinFreeMemoryForUnderUtilized", 0),
        vcpu_to_physical_cpu_ratio=number("VCpuToPhysicalCpuRatio", 0),
    )
    minutes, told = number("CpuOverCommitDurationMinutes", 2), question.request["told"]
    busy = frozenset(
        host for host in overloaded(snapshot, hosts, limits) if told[host]["overloaded_minutes"] >= minutes
    )
    move = balance_load(snapshot, cluster.id, hosts, limits, busy)
    return None if move is None else {"vm": move.vm, "hosts": list(move.hosts)}


def ha_check(question: Question) -> dict[str, Any]:
    """The check by the engine's own arithmetic, made exact: which failures of one host are not survived."""
    found = check.by_engine(question.snapshot, question.request["cluster"], failures=1)
    failed = [host for loss in found.losses for host in loss.hosts]
    return {"safe": bool(found.safe), "failed": failed}


def conflicts(question: Question) -> list[dict[str, Any]]:
    found = find_conflicts(question.snapshot, question.request["cluster"])
    return [{key: _plain(getattr(one, key)) for key in one.__struct_fields__} for one in found]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else str(value) if isinstance(value, str) else value


# -- The simulator's.
_START = datetime(2030, 1, 1, tzinfo=UTC)
#: For how long hosts are busy where a question does not say it, as to the engine's side.
_LONG_MINUTES = 100


def _asked(question: Question) -> tuple[Snapshot, list[Any], list[Any]]:
    snapshot = question.snapshot
    vms = [snapshot.vm_by_id[vm] for vm in question.vms]
    return snapshot, vms, [snapshot.host_by_id[host] for host in question.hosts]


def left_by(refuse: Filter) -> Callable[[Question], Any]:
    """The hosts that a filter leaves."""

    def answer(question: Question) -> list[str]:
        refused = refuse(*_asked(question))
        return [host for host in question.hosts if host not in refused]

    return answer


def weighed_by(weigh: EngineWeight) -> Callable[[Question], Any]:
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
    hosts: list[str] = left_by(partial(cpu_overloaded, state, _START))(question)
    return hosts


def selected(question: Question) -> str | None:
    """The host that the rank selector chooses."""
    records = [Record(*record) for record in question.request["records"]]
    return best_host(question.request["hosts"], records, dict(question.request["units"]))


def collisions(question: Question) -> list[dict[str, Any]]:
    state = engine_of(question)._backend.state
    groups = state.groups_of(question.request["cluster"])
    ids = {group.name: group.id for group in groups}
    names = {id(getattr(EventCode, name)): name for name in dir(EventCode) if name.isupper()}
    return [
        {
            "type": names[id(collision.code)],
            "savable": collision.code.severity == "warning",
            "groups": [ids[name] for name in collision.groups],
            "vms": list(collision.vms),
            "hosts": list(collision.hosts),
            "negative_vms": list(collision.negative_vms),
        }
        for collision in find_collisions([flat(state, group) for group in groups])
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
    try:
        hosts = list(scheduler.validate(_request(question), "run"))
    except Rejected:
        hosts = []
    return {"hosts": hosts, "best": _best(scheduler, question)}


def _request(question: Question) -> Placing:
    return Placing(vm_ids=question.vms, blacklist=frozenset(question.request.get("blacklist", ())))


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
        calls = (
            [method, *([names] if method == "runFilters" else []), hosts, vm]
            for method, names, hosts, vm, _ in proxy.calls
        )
        return {"best": best, "calls": [*calls]}


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
