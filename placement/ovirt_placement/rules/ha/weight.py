"""The weight of HA reservation: a highly available VM goes where its kind uses less of the host."""

from __future__ import annotations

from fractions import Fraction

from ovirt_placement.model import Cluster, Snapshot, Vm
from ovirt_placement.rules.ha.usage import Measure, added, measure_of, used
from ovirt_placement.rules.locations import destinations
from ovirt_placement.rules.parameters import whole_number
from ovirt_placement.rules.ranks import ranked
from ovirt_placement.rules.reasons import Reason, ReasonKind
from ovirt_placement.rules.rule import Rule, UnitKind
from ovirt_placement.rules.verdict import Request, Weight

HA_VMS_HERE = ReasonKind("ha_vms_here", "highly available VMs that are here: {number:g}")
HA_RESOURCES_HERE = ReasonKind(
    "ha_resources_here",
    "highly available VMs that are here take {number:g} % of its memory and CPUs on average",
)

_FULLEST = 100


def rank_hosts(snapshot: Snapshot, request: Request) -> tuple[Weight, ...]:
    """Rank each candidate host by what the highly available VMs of the cluster use of it.

    That is the mean of the parts of its memory and its CPUs that they take, or how many they are: the
    parameter ha_measure. The fullest candidate counts 100, the others in proportion, all divided by the
    parameter ha_weight_scale_down (1 to 100) and rounded up: the larger it is, the sooner hosts tie. The
    requested VMs themselves do not count (HA1). Without a highly available VM among them, or without HA
    reservation in their cluster, all hosts tie.
    """
    scale_down = max(1, whole_number(request.parameters, "ha_weight_scale_down", 1))
    measure = measure_of(request.parameters)
    vms = [vm for vm in map(snapshot.vm_by_id.get, request.vms) if vm is not None and vm.ha]
    clusters = {vm.cluster for vm in vms if snapshot.cluster_by_id[vm.cluster].ha_reservation}
    figures = {
        host: figure
        for host in request.candidate_hosts
        for cluster in clusters
        if (figure := used(snapshot, cluster, host, measure))
    }
    for host, own in _own(snapshot, vms, measure):
        if host in figures:
            figures[host] -= own
    fullest = max(figures.values(), default=Fraction(0)) or Fraction(1)
    scores = {host: _score(figure / fullest, measure, scale_down) for host, figure in figures.items()}
    reasons = {host: (_reason(figure, measure),) for host, figure in figures.items() if figure}
    return ranked(snapshot, request.candidate_hosts, scores, reasons, unburdened=0)


def _own(snapshot: Snapshot, vms: list[Vm], measure: Measure) -> list[tuple[str, Fraction]]:
    """What the requested VMs use of hosts at present."""
    return [
        (host, added(snapshot, vm, host, measure)) for vm in vms for host in destinations(snapshot, vm.id)
    ]


def _score(part: Fraction, measure: Measure, scale_down: int) -> int:
    """Percent of the fullest; as the engine counts VMs, halves are rounded up before they are scaled down."""
    above, below = _FULLEST * part.numerator, part.denominator
    if measure is Measure.VMS:
        above, below = (2 * above + below) // (2 * below), 1
    return -(-above // (below * scale_down))


def _reason(figure: Fraction, measure: Measure) -> Reason:
    if measure is Measure.VMS:
        return Reason(HA_VMS_HERE, number=int(figure))
    return Reason(HA_RESOURCES_HERE, number=round(float(100 * figure), 1))


def _asks(snapshot: Snapshot, cluster: Cluster) -> bool:
    return cluster.ha_reservation and any(vm.cluster == cluster.id and vm.ha for vm in snapshot.vms)


RULE = Rule(
    name="HaReservationWeight",
    kind=UnitKind.WEIGHT,
    twins=("OptimalForHaReservation",),
    twin_factor="ha_weight",
    # It adds what starts at this moment; with the engine's own factor it would outvote soft affinity.
    usual_factor=1,
    asked_by_cluster=_asks,
    cluster_asks="HA reservation means",
    weight=rank_hosts,
)
