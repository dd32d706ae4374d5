"""Where highly available VMs are and what they use; the weight that spreads them, and moves that do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from ovirt_placement.lookups import Earlier, continued
from ovirt_placement.model import Cluster, Snapshot, Vm
from ovirt_placement.rules.affinity.filters import HOST_FILTER, VM_FILTER
from ovirt_placement.rules.elements.placement import destinations
from ovirt_placement.rules.elements.ranks import ranked
from ovirt_placement.rules.elements.resources import cores_of, required_mb
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_placement.rules.elements.verdict import (
    BalanceMove,
    Reason,
    ReasonKind,
    Request,
    Weight,
    whole_number,
)
from ovirt_placement.rules.engine_affinity import HOST_GROUPS, VM_GROUPS
from ovirt_placement.rules.engine_filters import (
    CPU_FILTER,
    CPU_OVERLOADED_FILTER,
    CPU_PINNING_FILTER,
    MEMORY_FILTER,
)
from ovirt_placement.rules.load import admitted, choose_move, kept_free, may_move
from ovirt_placement.rules.placement_keys.units import KEY_FILTER
from ovirt_placement.rules.placement_rules.units import RULE_FILTER

#: What a move must pass: one that the engine refuses would be proposed again and again, and no other.
_FILTERS = (
    MEMORY_FILTER,
    CPU_FILTER,
    CPU_PINNING_FILTER,
    CPU_OVERLOADED_FILTER,
    VM_FILTER,
    HOST_FILTER,
    RULE_FILTER,
    KEY_FILTER,
    VM_GROUPS,
    HOST_GROUPS,
)
#: Ids of a cluster and of a host.
Place = tuple[str, str]


def places(snapshot: Snapshot, name: str) -> Sequence[Place]:
    """Cluster and host of a highly available VM; one on its way counts where it is going (HA2)."""
    vm = snapshot.vm_by_id.get(name)
    if vm is None or not vm.ha:
        return ()
    present = (vm.host,) if vm.host is not None else ()
    return [(vm.cluster, host) for host in snapshot.pending_hosts.get(name, present)]


class Measure(StrEnum):
    """How the use of a host by highly available VMs is measured."""

    #: The mean of the parts of its memory and of its CPUs that they take; 1 is a whole host.
    RESOURCES = "resources"
    #: How many they are: the engine's way.
    VMS = "vms"


def measure_of(parameters: Mapping[str, str]) -> Measure:
    """The measure that a policy asks for: the weight and the balance must measure alike."""
    return Measure.VMS if parameters.get("ha_measure") == Measure.VMS else Measure.RESOURCES


class Usage(NamedTuple):
    """What VMs take of the host that they are on."""

    vms: int = 0
    memory_mb: int = 0
    vcpus: int = 0

    def changed(self, vm: Vm, sign: int) -> Usage:
        """The same with one VM more, or one less."""
        return Usage(self.vms + sign, self.memory_mb + sign * required_mb(vm), self.vcpus + sign * vm.vcpus)


NOTHING = Usage()


def used(snapshot: Snapshot, cluster: str, host: str, measure: Measure) -> Fraction:
    """What the highly available VMs of a cluster, by its id, use of a host, those on their way included."""
    return _figure(snapshot, _usage(snapshot).get((cluster, host), NOTHING), host, measure)


def added(snapshot: Snapshot, vm: Vm, host: str, measure: Measure) -> Fraction:
    """What a VM uses of a host when it is there."""
    return _figure(snapshot, NOTHING.changed(vm, 1), host, measure)


def _figure(snapshot: Snapshot, usage: Usage, host: str, measure: Measure) -> Fraction:
    if measure is Measure.VMS:
        return Fraction(usage.vms)
    known = snapshot.host_by_id.get(host)
    if known is None:
        return Fraction(0)
    cores = cores_of(known, snapshot.cluster_by_id[known.cluster])
    return _part(usage.memory_mb, usage.vcpus, known.memory_mb, cores)


#: Hosts have few sizes, and few of them change from one decision to the next.
@lru_cache(maxsize=1 << 14)
def _part(memory_mb: int, vcpus: int, of_memory_mb: int, of_cores: int) -> Fraction:
    """The mean of two parts; what a host is not known to have is taken to be as little as can be."""
    return (Fraction(memory_mb, max(1, of_memory_mb)) + Fraction(vcpus, max(1, of_cores))) / 2


@continued
def _usage(snapshot: Snapshot, earlier: Earlier | None) -> Mapping[Place, Usage]:
    """By cluster and host, what the cluster's highly available VMs take there."""
    found: dict[Place, Usage] = {} if earlier is None else {**_usage(earlier.snapshot)}

    def change(state: Snapshot, vms: Iterable[str], sign: int) -> None:
        for name in vms:
            for place in places(state, name):
                found[place] = found.get(place, NOTHING).changed(state.vm_by_id[name], sign)

    differing: Iterable[str] = snapshot.vm_by_id
    if earlier is not None:
        differing = earlier.differing(snapshot)
        change(earlier.snapshot, differing, -1)
    change(snapshot, differing, 1)
    return found


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
    vms = [vm for vm in request.known_vms(snapshot) if vm.ha]
    clusters = {vm.cluster for vm in vms if snapshot.cluster_by_id[vm.cluster].ha_reservation}
    figures = {
        host: figure
        for host in request.candidate_hosts
        for cluster in clusters
        if (figure := used(snapshot, cluster, host, measure))
    }
    for vm in vms:
        for host in destinations(snapshot, vm.id):
            if host in figures:
                figures[host] -= added(snapshot, vm, host, measure)
    fullest = max(figures.values(), default=Fraction(0)) or Fraction(1)
    scores = {host: _score(figure / fullest, measure, scale_down) for host, figure in figures.items()}
    reasons = {host: (_reason(figure, measure),) for host, figure in figures.items() if figure}
    return ranked(snapshot, request.candidate_hosts, scores, reasons, unburdened=0)


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


def _asks(snapshot: Snapshot, cluster: Cluster) -> str:
    asks = cluster.ha_reservation and any(vm.cluster == cluster.id and vm.ha for vm in snapshot.vms)
    return "HA reservation means" if asks else ""


HA_WEIGHT = Rule(
    name="HaReservationWeight",
    kind=UnitKind.WEIGHT,
    twins=("OptimalForHaReservation",),
    # It adds what starts at this moment; with the engine's own factor it would outvote soft affinity.
    usual_factor=1,
    asked_by=_asks,
    weight=rank_hosts,
)


#: Percent of the even share from which on a host holds too many; the engine's default.
OVER_UTILIZATION = 200


class Spread(NamedTuple):
    """How the highly available VMs of a cluster are spread over some of its hosts, by one measure."""

    #: What they use, by host.
    used: dict[str, Fraction]
    #: What they would use of each host if all had the same part of it in use; VMs are rounded up.
    share: Fraction
    #: From this use on a host holds too many.
    threshold: Fraction

    def too_many(self, host: str) -> bool:
        return 0 < self.used[host] >= self.threshold


def measure_spread(
    snapshot: Snapshot, cluster_id: str, hosts: tuple[str, ...], over_utilization: int, measure: Measure
) -> Spread:
    """Measure these hosts alone, so that sources and shares speak of the same ones (HA7)."""
    now = {host: used(snapshot, cluster_id, host, measure) for host in hosts}
    if measure is Measure.VMS:
        whole = ceil(sum(now.values()) / max(1, len(hosts)))
        return Spread(now, Fraction(whole), Fraction(ceil(Fraction(whole * over_utilization, 100))))
    known = [snapshot.host_by_id[host] for host in hosts if host in snapshot.host_by_id]
    there = [_usage(snapshot).get((cluster_id, host.id), NOTHING) for host in known]
    share = _part(
        sum(one.memory_mb for one in there),
        sum(one.vcpus for one in there),
        sum(host.memory_mb for host in known),
        sum(cores_of(host, snapshot.cluster_by_id[host.cluster]) for host in known),
    )
    return Spread(now, share, share * over_utilization / 100)


def balance_ha_vms(
    snapshot: Snapshot,
    cluster_id: str,
    candidate_hosts: tuple[str, ...],
    over_utilization: int = OVER_UTILIZATION,
    measure: Measure = Measure.RESOURCES,
    asking: Asking | None = None,
) -> BalanceMove | None:
    """Choose a highly available VM to move; None if the load is even.

    A host is overloaded from `over_utilization` percent of the even share on. The VM goes to hosts
    below the share, never a failover host, and only if it leaves its host fuller than it makes the other
    (HA3, HA6); the fullest host that has a movable VM comes first (HA5, HA8), and the largest of its VMs that
    some host accepts; but a move that violates no soft group comes before one that does.
    """
    cluster = snapshot.cluster_by_id[cluster_id]
    if not cluster.ha_reservation or len(candidate_hosts) < 2:
        return None
    now = measure_spread(snapshot, cluster_id, candidate_hosts, over_utilization, measure)
    asking = asking or Asking()

    emptiest = sorted(now.used, key=lambda host: (now.used[host], host))
    below = [host for host in emptiest if now.used[host] < now.share and not kept_free(snapshot, host)]

    def emptiest_first(source: str, vm: Vm) -> tuple[str, ...]:
        then = ((host, now.used[host] + added(snapshot, vm, host, measure)) for host in below)
        return tuple(host for host, figure in then if figure < now.used[source])

    def moves() -> Iterator[BalanceMove]:
        full = filter(now.too_many, now.used)
        for source in sorted(full, key=lambda host: (-now.used[host], host)):
            there = snapshot.vms_of_host.get(source, ())
            vms = [vm for vm in there if vm.ha and vm.cluster == cluster_id and may_move(snapshot, vm)]
            sizes = {vm.id: added(snapshot, vm, source, measure) for vm in vms}
            for vm in sorted(vms, key=lambda vm: (-sizes[vm.id], vm.id)):
                if hosts := asking.accepted(snapshot, vm, emptiest_first(source, vm)):
                    yield BalanceMove(vm.id, hosts)

    return choose_move(snapshot, moves())


#: No more pairs of a VM and a host are asked about in a call: with a thousand VMs that none of 500 hosts
#: accepts it would take a minute.
_MOST_ASKED = 10_000


class Asking:
    """Which hosts accept a VM, as long as not too many pairs were asked about."""

    def __init__(self) -> None:
        self._left = _MOST_ASKED

    def accepted(
        self,
        snapshot: Snapshot,
        vm: Vm,
        hosts: tuple[str, ...],
        unfit: Callable[[str], bool] = lambda host: False,
    ) -> tuple[str, ...]:
        if self._left <= 0:
            return ()
        self._left -= len(hosts)
        fits = tuple(host for host in hosts if not unfit(host))
        return self._admitted(snapshot, vm, fits)

    def _admitted(self, snapshot: Snapshot, vm: Vm, hosts: tuple[str, ...]) -> tuple[str, ...]:
        return admitted(snapshot, vm, hosts, _FILTERS) if hosts else ()
