"""Where the highly available VMs of a cluster are, and what they use of a host: memory and CPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from ovirt_placement.lookups.index import Earlier, continued
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules.cpus import cores_of
from ovirt_placement.rules.memory import required_mb

#: Ids of a cluster and of a host.
Place = tuple[str, str]
#: The parameter of the weight and the balance: they must measure alike, and a policy may have but one.
PARAMETER = "ha_measure"


@continued
def ha_vms_of(snapshot: Snapshot, earlier: Earlier | None) -> Mapping[Place, Sequence[str]]:
    """Ids of highly available VMs by cluster and host; one on its way counts where it is going (HA2)."""
    if earlier is None:
        found: defaultdict[Place, list[str]] = defaultdict(list)
        for vm in snapshot.vms:
            if vm.ha:
                for place in places(snapshot, vm.id):
                    found[place].append(vm.id)
        return dict(found)
    exchanged = dict(ha_vms_of(earlier.snapshot))
    for name in sorted(earlier.differing(snapshot)):
        for place in places(earlier.snapshot, name):
            exchanged[place] = [one for one in exchanged[place] if one != name]
        for place in places(snapshot, name):
            exchanged[place] = [*exchanged.get(place, ()), name]
    return exchanged


def places(snapshot: Snapshot, name: str) -> Sequence[Place]:
    """Cluster and host of a highly available VM; several hosts, if it is on its way to several."""
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
    """The measure that a policy asks for."""
    return Measure.VMS if parameters.get(PARAMETER) == Measure.VMS else Measure.RESOURCES


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


def even_share(snapshot: Snapshot, cluster: str, hosts: Iterable[str]) -> Fraction:
    """What each of the hosts would have in use if all had the same part of their resources in use."""
    known = [snapshot.host_by_id[host] for host in hosts if host in snapshot.host_by_id]
    there = [_usage(snapshot).get((cluster, host.id), NOTHING) for host in known]
    return _part(
        sum(one.memory_mb for one in there),
        sum(one.vcpus for one in there),
        sum(host.memory_mb for host in known),
        sum(_cores(snapshot, host) for host in known),
    )


def _figure(snapshot: Snapshot, usage: Usage, host: str, measure: Measure) -> Fraction:
    if measure is Measure.VMS:
        return Fraction(usage.vms)
    known = snapshot.host_by_id.get(host)
    if known is None:
        return Fraction(0)
    return _part(usage.memory_mb, usage.vcpus, known.memory_mb, _cores(snapshot, known))


def _cores(snapshot: Snapshot, host: Host) -> int:
    return cores_of(host, snapshot.cluster_by_id[host.cluster])


#: Hosts have few sizes, and few of them change from one decision to the next.
@lru_cache(maxsize=1 << 14)
def _part(memory_mb: int, vcpus: int, of_memory_mb: int, of_cores: int) -> Fraction:
    """The mean of two parts; what a host is not known to have is taken to be as little as can be."""
    return (Fraction(memory_mb, max(1, of_memory_mb)) + Fraction(vcpus, max(1, of_cores))) / 2


@continued
def _usage(snapshot: Snapshot, earlier: Earlier | None) -> Mapping[Place, Usage]:
    """By cluster and host, what the cluster's highly available VMs take there."""
    found: dict[Place, Usage] = {}
    if earlier is None:
        _change(found, snapshot, snapshot.vm_by_id, 1)
        return found
    found |= _usage(earlier.snapshot)
    differing = earlier.differing(snapshot)
    _change(found, earlier.snapshot, differing, -1)
    _change(found, snapshot, differing, 1)
    return found


def _change(found: dict[Place, Usage], snapshot: Snapshot, vms: Iterable[str], sign: int) -> None:
    for name in vms:
        for place in places(snapshot, name):
            found[place] = found.get(place, NOTHING).changed(snapshot.vm_by_id[name], sign)
