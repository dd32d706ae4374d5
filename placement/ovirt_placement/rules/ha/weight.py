"""The weight of HA reservation: a highly available VM goes where fewer of its kind are."""

from __future__ import annotations

from collections import Counter

from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.rules.ha.vms import ha_vms_of
from ovirt_placement.rules.locations import destinations
from ovirt_placement.rules.parameters import whole_number
from ovirt_placement.rules.ranks import ranked
from ovirt_placement.rules.reasons import Reason, ReasonKind
from ovirt_placement.rules.rule import Rule, UnitKind
from ovirt_placement.rules.verdict import Request, Weight

HA_VMS_HERE = ReasonKind("ha_vms_here", "highly available VMs that are here: {number:g}")

_FULLEST = 100


def rank_hosts(snapshot: Snapshot, request: Request) -> tuple[Weight, ...]:
    """Rank each candidate host by the highly available VMs of the cluster that are there.

    The fullest candidate counts 100, the others in proportion, all divided by the parameter
    ha_weight_scale_down (1 to 100) and rounded up: the larger it is, the sooner hosts tie. The requested
    VMs themselves do not count (HA1). Without a highly available VM among them, or without HA reservation
    in their cluster, all hosts tie.
    """
    scale_down = max(1, whole_number(request.parameters, "ha_weight_scale_down", 1))
    clusters = {
        vm.cluster
        for vm in map(snapshot.vm_by_id.get, request.vms)
        if vm is not None and vm.ha and snapshot.cluster_by_id[vm.cluster].ha_reservation
    }
    there = ha_vms_of(snapshot)
    own = Counter(
        (snapshot.vm_by_id[vm].cluster, host)
        for vm in request.vms
        if vm in snapshot.vm_by_id and snapshot.vm_by_id[vm].ha
        for host in destinations(snapshot, vm)
    )
    counts = {
        host: count
        for host in request.candidate_hosts
        for cluster in clusters
        if (count := len(there.get((cluster, host), ())) - own[cluster, host])
    }
    fullest = max(counts.values(), default=1)
    scores = {host: -(-_share(count, fullest) // scale_down) for host, count in counts.items()}
    reasons = {host: (Reason(HA_VMS_HERE, number=count),) for host, count in counts.items()}
    return ranked(snapshot, request.candidate_hosts, scores, reasons, unburdened=0)


def _share(count: int, fullest: int) -> int:
    """Percent of the fullest, halves rounded up."""
    return (2 * count * _FULLEST + fullest) // (2 * fullest)


def _asks(snapshot: Snapshot, cluster: Cluster) -> bool:
    return cluster.ha_reservation and any(vm.cluster == cluster.id and vm.ha for vm in snapshot.vms)


RULE = Rule(
    name="HaReservationWeight",
    kind=UnitKind.WEIGHT,
    twins=("OptimalForHaReservation",),
    twin_factor="ha_weight",
    parameters=(
        "ha_weight_scale_down=(100|[1-9][0-9]?);"
        "ha_failures=[1-9];"
        "ha_failover_hosts=[A-Za-z0-9_.-]+(,[A-Za-z0-9_.-]+)*"
    ),
    # It adds what starts at this moment; with the engine's own factor it would outvote soft affinity.
    usual_factor=1,
    asked_by_cluster=_asks,
    weight=rank_hosts,
)
