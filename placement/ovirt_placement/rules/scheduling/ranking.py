"""Orders the hosts that may take a VM by our weights, as the engine's selector would."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ovirt_placement.model import Cluster, Snapshot, Vm
from ovirt_placement.rules import rank_selector
from ovirt_placement.rules.affinity import hard_weight
from ovirt_placement.rules.catalogue import in_force
from ovirt_placement.rules.listed import NO_UNITS
from ovirt_placement.rules.placement_keys.judgement import HostDecision
from ovirt_placement.rules.rule import UnitKind
from ovirt_placement.rules.scheduling.judging import HostJudgement, judge, request_for
from ovirt_placement.rules.verdict import Request, Weight


@dataclass(frozen=True, slots=True)
class Ranked:
    """A host, the points that the engine's selector gives it, and each unit's rank of it."""

    host: str
    points: int
    #: By unit.
    weights: Mapping[str, Weight]
    #: How far the host comes by placement keys, where their units count.
    keys: HostDecision | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The accepted hosts from best to worst, the units whose weights count, and the refused hosts."""

    units: tuple[str, ...]
    hosts: tuple[Ranked, ...]
    #: The others, with whose verdict that is.
    refused: tuple[HostJudgement, ...]


def order(snapshot: Snapshot, vm: Vm, also: Collection[str] = NO_UNITS) -> Ranking:
    """Order the hosts of a VM's cluster that all filters accept.

    Units count where the policy enables them or is not known, or where they are named in `also`. The
    engine's own weights are not reckoned with.
    """
    cluster = snapshot.cluster_by_id[vm.cluster]
    hosts = snapshot.hosts_of_cluster.get(vm.cluster, ())
    judged = judge(snapshot, vm, hosts, also)
    accepted = {answer.host: answer for answer in judged.hosts if answer.accepted}
    request = request_for(snapshot, vm, [host for host in hosts if host.id in accepted])
    weights = _weights(snapshot, cluster, request, also)
    ranks: dict[str | None, dict[str, int]] = {
        unit: {host: found.rank for host, found in by_host.items()} for unit, by_host in weights.items()
    }
    ordered = rank_selector.order_hosts(request.candidate_hosts, ranks, _factors(cluster))
    return Ranking(
        tuple(weights),
        tuple(
            Ranked(
                one.host,
                one.points,
                {unit: by_host[one.host] for unit, by_host in weights.items()},
                accepted[one.host].keys,
            )
            for one in ordered
        ),
        tuple(answer for answer in judged.hosts if not answer.accepted),
    )


def _weights(
    snapshot: Snapshot, cluster: Cluster, request: Request, also: Collection[str]
) -> dict[str, dict[str, Weight]]:
    """What each weight says of each host, by unit and host; none that the policy is known to lack."""
    # Of starts at once, which the weight of hard chains is for, nothing is known without a policy.
    known = cluster.scheduling_policy is not None
    return {
        rule.name: {weight.host: weight for weight in rule.weight(snapshot, request)}
        for rule in in_force(cluster, UnitKind.WEIGHT, also)
        if rule.weight is not None
        and (rule.enabled_in(cluster) or rule.name in also or not (known or rule is hard_weight.RULE))
    }


def _factors(cluster: Cluster) -> dict[str, int]:
    """Of our units in the cluster's policy; 1 where the policy is not known or lacks them."""
    return dict(cluster.scheduling_policy.weights) if cluster.scheduling_policy else {}
