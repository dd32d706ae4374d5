"""For each kind of vector: the rule that our plugins and commands call, and how its answer is judged."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from ovirt_placement.model import Snapshot
from ovirt_placement.rules import host_affinity, host_affinity_weight, vm_affinity, vm_affinity_weight
from ovirt_placement.rules.unified_groups import unify
from ovirt_placement.rules.verdict import Request, Verdict, Weight
from tests.conformance.judge import difference_of_sets, difference_of_tiers
from tests.conformance.vector import Vector

#: What is wrong with our answer to a vector; None if it is right.
Judgement = Callable[[Vector], str | None]
Filter = Callable[[Snapshot, Request], tuple[Verdict, ...]]
Ranking = Callable[[Snapshot, Request], tuple[Weight, ...]]


def request_of(vector: Vector) -> Request:
    return Request(
        vms=tuple(vector.request["vms"]),
        candidate_hosts=tuple(vector.request["candidate_hosts"]),
        ignore_hard_vm_affinity=vector.request.get("ignore_hard_vm_affinity", False),
    )


def _filter(filter_hosts: Filter) -> Judgement:
    def judge(vector: Vector) -> str | None:
        verdicts = filter_hosts(vector.snapshot, request_of(vector))
        return difference_of_sets(vector, "hosts", [verdict.host for verdict in verdicts if verdict.accepted])

    return judge


def _weight(rank_hosts: Ranking) -> Judgement:
    def judge(vector: Vector) -> str | None:
        weights = rank_hosts(vector.snapshot, request_of(vector))
        tiers: list[list[str]] = [[] for _ in range(1 + max(weight.rank for weight in weights))]
        for weight in weights:
            tiers[weight.rank].append(weight.host)
        return difference_of_tiers(vector, tiers)

    return judge


def _unified_groups(vector: Vector) -> str | None:
    cluster = vector.request["cluster"]
    groups = (group for group in vector.snapshot.affinity_groups if group.cluster == cluster)
    return difference_of_sets(vector, "groups", [unified.vms for unified in unify(vector.snapshot, groups)])


JUDGEMENTS: MappingProxyType[str, Judgement] = MappingProxyType(
    {
        "vm_affinity_filter": _filter(vm_affinity.filter_hosts),
        "vm_to_host_filter": _filter(host_affinity.filter_hosts),
        "vm_affinity_weight": _weight(vm_affinity_weight.rank_hosts),
        "vm_to_host_weight": _weight(host_affinity_weight.rank_hosts),
        "unified_groups": _unified_groups,
    }
)
