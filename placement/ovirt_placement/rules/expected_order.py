"""In which order the engine is expected to choose hosts for VMs, by the weights that we know of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.rules import rank_selector
from ovirt_placement.rules.catalogue import RULES
from ovirt_placement.rules.memory import promised_mb, required_mb
from ovirt_placement.rules.rule import Ranking, Rule, UnitKind
from ovirt_placement.rules.verdict import Request

_MEMORY = "even_memory_weight"


def with_order(rule: Rule, snapshot: Snapshot, request: Request) -> Request:
    """The request as the rule is to be asked: with the expected order of hosts, if it goes by that."""
    vms = rule.orders_for(snapshot, request) if rule.orders_for is not None else ()
    return replace(request, order=expected_order(snapshot, request, vms)) if vms else request


def expected_order(snapshot: Snapshot, request: Request, vms: tuple[str, ...]) -> tuple[str, ...]:
    """The candidate hosts of a request from the best to the worst, if all of these VMs are to come there.

    By our weights in the cluster's policy, but for those that wait for this order or draw lots, and by the
    engine's even distribution of memory; failover hosts and those without room for all VMs come last.
    """
    cluster = snapshot.cluster_by_id[snapshot.vm_by_id[request.vms[0]].cluster]
    factors = dict(cluster.scheduling_policy.weights) if cluster.scheduling_policy else {}
    free = _free_mb(snapshot, request)
    weights: dict[str | None, Mapping[str, int]] = {_MEMORY: {host: -mb for host, mb in free.items()}}
    factors[_MEMORY] = max(1, cluster.policy.get(_MEMORY, 1))
    for vm in vms:
        asked = replace(request, vms=(vm,), as_engine=False)
        for rule, weigh in _weighing(cluster):
            name = f"{rule.name} {vm}"
            weights[name] = {one.host: one.rank for one in weigh(snapshot, asked)}
            factors[name] = factors[rule.name]
    needed = sum(required_mb(snapshot.vm_by_id[vm]) for vm in vms)
    ordered = (one.host for one in rank_selector.order_hosts(request.candidate_hosts, weights, factors))
    return tuple(sorted(ordered, key=lambda host: _comes_last(snapshot, host, needed, free)))


def _weighing(cluster: Cluster) -> Iterable[tuple[Rule, Ranking]]:
    return (
        (rule, rule.weight)
        for rule in RULES
        if rule.kind is UnitKind.WEIGHT
        and rule.weight is not None
        and rule.enabled_in(cluster)
        and rule.orders_for is None
        and not rule.draws
    )


def _free_mb(snapshot: Snapshot, request: Request) -> dict[str, int]:
    """What each candidate may hand out, less what is expected there and not shown yet."""
    promised: Counter[str] = Counter()
    for entry in snapshot.pending:
        if entry.expected:
            promised[entry.host] += promised_mb(snapshot.vm_by_id[entry.vm], entry)
    known = snapshot.host_by_id
    return {
        host: known[host].free_mb - promised[host] if host in known else 0 for host in request.candidate_hosts
    }


def _comes_last(snapshot: Snapshot, host: str, needed_mb: int, free_mb: Mapping[str, int]) -> bool:
    known = snapshot.host_by_id.get(host)
    return known is None or known.failover or free_mb[host] < needed_mb
