"""The product's answers: those of its own units, and of its copies of the engine's."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ovirt_enforcer.policy_actors import SimulatedCluster, engine_candidates, engine_target
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.conflicts import find_conflicts
from ovirt_placement.rules.affinity.groups import unify
from ovirt_placement.rules.elements.ranks import order_hosts
from ovirt_placement.rules.elements.verdict import Request, Verdict, Weight, whole_number
from ovirt_placement.rules.failover import check
from ovirt_placement.rules.load import LoadLimits, balance_load, overloaded
from tools.engine_conformance.questions import Question


def request_of(question: Question) -> Request:
    return Request(
        vms=question.vms,
        candidate_hosts=question.hosts,
        parameters=question.parameters,
    )


def accepted(filter_hosts: Callable[[Snapshot, Request], Iterable[Verdict]]) -> Callable[[Question], Any]:
    """The hosts that a filter accepts."""

    def answer(question: Question) -> list[str]:
        verdicts = filter_hosts(question.snapshot, request_of(question))
        return [verdict.host for verdict in verdicts if verdict.accepted]

    return answer


def scores(score: Callable[[Snapshot, Request], Mapping[str, int]]) -> Callable[[Question], Any]:
    """What a copy of one of the engine's weights says of hosts."""

    def answer(question: Question) -> dict[str, int]:
        return dict(score(question.snapshot, request_of(question)))

    return answer


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
    groups = (
        group
        for group in question.snapshot.affinity_groups
        if group.cluster == question.request["cluster"] and group.vms_rule.hard and group.vms_rule.positive
    )
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
