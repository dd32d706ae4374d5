"""The engine's own weights: lower is better, as it records them; and the best host by these and others.

Source: the engine's PreferredHostsWeightPolicyUnit, HaReservationWeightPolicyUnit,
VmAffinityWeightPolicyUnit, VmToHostAffinityWeightPolicyUnit, HostedEngineHAClusterWeightPolicyUnit,
HighPerformanceCpuPolicyUnit, CpuAndNumaPinningWeightPolicyUnit, EvenDistributionCPUWeightPolicyUnit,
HostCpuLoadHelper, PolicyUnitImpl (stretchScores), EvenDistributionMemoryWeightPolicyUnit and
RankSelectorPolicyUnit, whose tables are Java HashMaps: of equals, the first in the table wins.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from ovirt_placement.model import AffinityGroup, Cluster, Host, Snapshot, Vm
from ovirt_simulator.core.affinity import stored_priority
from ovirt_simulator.core.state import required_mb
from ovirt_simulator.scheduler.filters import coming_to, cpus, peer_places

#: What a host weighs that a VM does not prefer.
_NOT_PREFERRED = 10000
#: Weights by host id, in the engine's order; a host that is not there has none recorded.
Weights = dict[str, int]
Weight = Callable[[Snapshot, Sequence[Vm], Sequence[Host]], Weights]


def preferred_hosts(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Weights:
    """Prefer the hosts that a VM names, be it bound to them or not; only VMs that are down have a say."""
    return _summed(
        {
            host.id: _NOT_PREFERRED * (bool(vm.pinned_hosts) and host.id not in vm.pinned_hosts)
            for host in hosts
        }
        for vm in vms
        if vm.status == "down"
    )


def ha_reservation(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Weights:
    """Prefer hosts with fewer highly available VMs, of 100 for the fullest candidate."""
    cluster = snapshot.cluster_by_id[hosts[0].cluster]
    none = {host.id: 0 for host in hosts}
    reserves = cluster.ha_reservation and any(vm.ha for vm in vms)
    shares = _ha_shares(snapshot, cluster, hosts) if reserves else none
    return _summed(shares if vm.ha else none for vm in vms)


def _ha_shares(snapshot: Snapshot, cluster: Cluster, hosts: Sequence[Host]) -> Weights:
    there = {host.id: snapshot.vms_of_host.get(host.id, ()) for host in hosts}
    counts = {i: sum(vm.ha and vm.cluster == cluster.id for vm in there[i]) for i in there}
    most, scale = max(counts.values()) or 1, int(cluster.scheduling_properties.get("ScaleDown", 1))
    return {i: math.ceil(math_round(float32(float32(n / most) * 100)) / scale) for i, n in counts.items()}


def indifferent(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Weights:
    """Say nothing, as no host here has a score of its own, and no VM NUMA nodes. Its order still counts."""
    return {host.id: 1 for host in hosts}


def high_performance(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Weights:
    """Say nothing, VM for VM: no VM here is a high-performance one."""
    return _summed({host.id: 1 for host in hosts} for _ in vms)


def vm_affinity(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Weights:
    """Rank hosts by the VM-to-VM groups they violate, hard and soft alike, then by the peers they have."""
    groups = {g.id: g for vm in vms for g in snapshot.groups_of_vm.get(vm.id, ()) if g.vms_rule.enabled}
    scheduled = {vm.id for vm in vms}
    peers = [(group, peer_places(snapshot, group, vms, scheduled)) for group in groups.values()]
    return _ranks({host.id: _vm_affinity_key(snapshot, peers, host) for host in hosts})


def vm_to_host(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Weights:
    """Rank hosts, for each VM, by the priorities of the soft VM-to-host groups they violate; ranks add up."""

    def broken(vm: Vm, host: Host) -> Iterator[AffinityGroup]:
        for group in snapshot.groups_of_vm.get(vm.id, ()):
            listed = host.id in snapshot.group_hosts[group.id]
            if group.hosts_rule.soft and listed != group.hosts_rule.positive:
                yield group

    return _summed(_ranks({host.id: _worst_first(broken(vm, host)) for host in hosts}) for vm in vms)


def _vm_affinity_key(
    snapshot: Snapshot, peers: Sequence[tuple[AffinityGroup, Mapping[str, Sequence[str]]]], host: Host
) -> tuple[tuple[int, ...], int, int]:
    broken: list[AffinityGroup] = []
    friends: set[str] = set()
    for group, places in peers:
        there = {vm_id for vm_id, hosts in places.items() if host.id in hosts}
        if bool(there) != group.vms_rule.positive:
            broken.append(group)
        if group.vms_rule.positive:
            friends |= there
    tied = sum(_is_tied(snapshot, vm_id) for vm_id in friends)
    return _worst_first(broken), -tied, -len(friends)


def _is_tied(snapshot: Snapshot, vm_id: str) -> bool:
    """Return whether the peer cannot leave; the engine takes every pending one for migratable (quirk W1)."""
    return vm_id not in snapshot.pending_hosts and not snapshot.vm_by_id[vm_id].movable


def _worst_first(groups: Iterable[AffinityGroup]) -> tuple[int, ...]:
    return tuple(sorted((stored_priority(group.priority) for group in groups), reverse=True))


def _ranks(keys: Mapping[str, Any]) -> Weights:
    """Give each host 1 plus the number of strictly better ones, best first."""
    ordered = sorted(keys.values())
    return {i: 1 + bisect_left(ordered, keys[i]) for i in sorted(keys, key=lambda i: keys[i])}


def _summed(of_vms: Iterable[Weights]) -> Weights:
    """Add up what the VMs say one by one: it comes in the order of the engine's table."""
    sums = HashMap[int]()
    for weights in of_vms:
        for host_id, weight in weights.items():
            sums.merge(host_id, weight + sums.get(host_id, 0))
    return {host_id: sums[host_id] for host_id in sums if host_id is not None}


#: The engine's MaxSchedulerWeight.
_WORST = 1000
#: Percent of a CPU that a vCPU needs of which nothing is measured, and that managing storage needs: the
#: engine's VcpuConsumptionPercentage and SpmVCpuConsumption.
_VCPU_PERCENT = 10
#: A host with more vCPUs to a CPU than the parameter allows is this many times as loaded.
_RATIO, _CROWDED = "VCpuToPhysicalCpuRatio", 1000


def even_cpu(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Weights:
    """Prefer hosts whose CPUs will have less to do; those without statistics are the worst."""
    loads = {host.id: _cpu_percent(snapshot, vms, host) for host in hosts if host.cpu_percent is not None}
    return _stretched(loads) | {host.id: _WORST for host in hosts if host.cpu_percent is None}


def _cpu_percent(snapshot: Snapshot, vms: Sequence[Vm], host: Host) -> int:
    arriving = [*coming_to(snapshot, host), *(vm for vm in vms if vm.host != host.id)]
    load = int(host.cpu_percent or 0) * cpus(host, snapshot) + _VCPU_PERCENT * host.spm
    load += sum(map(_load, arriving))
    return math_round(_penalty(snapshot, arriving, host) * divided(load, cpus(host, snapshot)))


def _load(vm: Vm) -> int:
    """Give what the VM needs, in percent of a CPU: what it uses where it runs, if that is known."""
    measured = vm.host is not None and vm.usage_cpu_percent is not None
    return vm.vcpus * (int(vm.usage_cpu_percent or 0) if measured else _VCPU_PERCENT)


def _penalty(snapshot: Snapshot, arriving: Sequence[Vm], host: Host) -> int:
    allowed = _number(snapshot.cluster_by_id[host.cluster].scheduling_properties.get(_RATIO, ""))
    if allowed == 0:
        return 1
    there = [vm for vm in snapshot.vms_of_host.get(host.id, ()) if vm.status != "wait_for_launch"]
    vcpus = sum(vm.vcpus for vm in (*there, *arriving))
    return 1 if divided(vcpus, cpus(host, snapshot)) < allowed else _CROWDED


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _stretched(loads: Mapping[str, int]) -> Weights:
    """Spread the loads from 1 to 1000; if all are equal, all are 1."""
    least, most = min(loads.values(), default=0), max(loads.values(), default=0)
    if least == most:
        return dict.fromkeys(loads, 1)
    span = most - least
    return {i: math_round(1 + (load - least) / span * (_WORST - 1)) for i, load in loads.items()}


def even_memory(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Weights:
    """Prefer hosts with more memory to hand out once the VMs that are not there yet have theirs."""
    most = float32(max(host.free_mb for host in hosts))
    weights = {}
    for host in hosts:
        arriving = sum(required_mb(vm) for vm in vms if vm.host != host.id)
        left = float32(float32(host.free_mb) - float32(arriving))
        share = float32(divided(float32(float32(left - 1) * (_WORST - 1)), float32(most - 1)))
        weights[host.id] = as_int(_WORST - math_round(share))
    return weights


class Record(NamedTuple):
    """A weight that a unit gives to a host; None stands for the unit of weights that came without one."""

    unit: str | None
    host: str
    weight: int


def best_host(hosts: Sequence[str], records: Iterable[Record], factors: Mapping[str, int]) -> str | None:
    """Give the host with the highest sum of points; None if no unit says anything.

    Weights of a unit for the same host add up; a host without any has 0, the best. A unit gives a point for
    each other host with the same or a worse weight; one without a factor counts once. Where ids are no UUIDs,
    which no engine has, the first of equals is the first of `hosts`.
    """
    points, units = HashMap[int](), HashMap[list[Record]]()
    for record in records:
        if record.unit not in units:
            units.put(record.unit, [])
        units[record.unit].append(record)
    for unit in units:
        weights = _weights_of(hosts, units[unit])
        ordered = sorted(weights, key=lambda host: weights[host])
        worst = sorted(weights[host] for host in ordered)
        factor = 1 if unit is None else factors.get(unit, 1)
        for host in ordered:
            rank = len(ordered) - 1 - bisect_left(worst, weights[host])
            points.merge(host, as_int(points.get(host, 0) + factor * rank))
    found = [host for host in points if host is not None]
    if any(guid_hash(host) is None for host in found):
        found.sort(key=lambda host: hosts.index(host) if host in hosts else len(hosts))
    return max(found, key=lambda host: points[host], default=None)


def _weights_of(hosts: Sequence[str], records: Iterable[Record]) -> HashMap[int]:
    weights = HashMap[int]()
    for record in records:
        weights.merge(record.host, as_int(weights.get(record.host, 0) + record.weight))
    for host in hosts:
        if host not in weights:
            weights.put(host, 0)
    return weights


# -- What of the answers follows from Java: how ids compare, tables, and numbers. Source: java.util.UUID
# (compareTo, hashCode), which the engine's Guid hands both to, and java.util.HashMap of OpenJDK.
_LONG = 1 << 64


def guid_order(name: str) -> tuple[bool, int, int, str]:
    """Give what ids sort by: their upper and then their lower half, each a signed 64-bit number.

    What is no UUID, which no engine has, comes last, by its letters.
    """
    bits = _bits(name)
    if bits is None:
        return True, 0, 0, name
    return False, _signed(bits // _LONG), _signed(bits % _LONG), name


def guid_hash(name: str) -> int | None:
    """Give the 32 bits that a HashMap finds the id's bin by; None for what is no UUID."""
    bits = _bits(name)
    if bits is None:
        return None
    half = bits // _LONG ^ bits % _LONG
    code = (half >> 32 ^ half) & 0xFFFFFFFF
    return code ^ code >> 16


def _bits(name: str) -> int | None:
    try:
        return UUID(name).int
    except ValueError:
        return None


def _signed(half: int) -> int:
    return half if half < _LONG // 2 else half - _LONG


def float32(number: float) -> float:
    """Round to the 32 bits of Java's float."""
    (rounded,) = struct.unpack("f", struct.pack("f", number))
    return float(rounded)


def divided(dividend: float, divisor: float) -> float:
    """Divide as Java's floating-point numbers do, by zero too."""
    if divisor:
        return dividend / divisor
    return math.copysign(math.inf, dividend) if dividend else math.nan


def math_round(number: float) -> int:
    """Round to the nearest int, halves up; what is no number gives 0, and the ends of an int hold."""
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return 2**31 - 1 if number > 0 else -(2**31)
    whole = math.floor(number)
    return whole if number - whole < 0.5 else whole + 1


def as_int(number: int) -> int:
    """Give what is left of a sum in the 32 bits of an int."""
    return (number + 2**31) % 2**32 - 2**31


Value = TypeVar("Value")

_BINS = 16
#: A bin with this many keys is too long: a table with fewer bins than the second number grows.
_LONG_BIN, _FEW_BINS = 8, 64


class HashMap(dict["str | None", Value]):
    """Values by id. What is no UUID has the hash 0; so has None, the key that the engine calls null."""

    def __init__(self) -> None:
        super().__init__()
        self._bins: list[list[str | None]] = [[] for _ in range(_BINS)]

    def __iter__(self) -> Iterator[str | None]:
        for keys in self._bins:
            yield from keys

    def put(self, key: str | None, value: Value) -> None:
        """Set a value: a new key goes to the end of its bin, and a table that is too full grows now."""
        if self._enter(key, value, at_front=False):
            self._grow_if_too_full()

    def merge(self, key: str | None, value: Value) -> None:
        """Set a value: a new key goes in front of its bin, and a table that is too full grows before."""
        self._grow_if_too_full()
        self._enter(key, value, at_front=True)

    def _enter(self, key: str | None, value: Value, *, at_front: bool) -> bool:
        """Set a value; whether its key is new. A bin that is too long makes a small table grow."""
        is_new = key not in self
        self[key] = value
        if is_new:
            keys = self._bin(key)
            keys.insert(0 if at_front else len(keys), key)
            if len(keys) >= _LONG_BIN + (not at_front) and len(self._bins) < _FEW_BINS:
                self._grow()
        return is_new

    def _bin(self, key: str | None) -> list[str | None]:
        return self._bins[(0 if key is None else guid_hash(key) or 0) % len(self._bins)]

    def _grow_if_too_full(self) -> None:
        if len(self) > len(self._bins) // 4 * 3:
            self._grow()

    def _grow(self) -> None:
        keys = list(self)
        self._bins = [[] for _ in range(2 * len(self._bins))]
        for key in keys:
            self._bin(key).append(key)
