"""Which host the engine will choose, by what units found and by what is known of the policy: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from operator import add

from ovirt_placement.inventory.expected.traces import ONE_CALL_SECONDS, Trace
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.rank_selector import as_the_engine_finds, points_of

#: What a vCPU that does not run yet is taken to need of a core: the engine's VcpuConsumptionPercentage.
_VCPU_PERCENT = 10


def of_one_call(traces: Sequence[Trace]) -> tuple[Trace, ...]:
    """Its traces in the last call about a VM: of weights about the same hosts, else of filters."""
    last = traces[-1]
    found: dict[str, Trace] = {}
    for trace in reversed(traces):
        if last.at - trace.at > ONE_CALL_SECONDS or trace.unit in found:
            break
        if bool(trace.ranks) != bool(last.ranks) or (last.ranks and trace.hosts != last.hosts):
            break
        found[trace.unit] = trace
    return tuple(found.values())


def expected_host(
    snapshot: Snapshot, vm: Vm, traces: Sequence[Trace], promised: Mapping[str, Sequence[Vm]]
) -> str | None:
    """The one host that the filters left, else the best by our weights and the engine's, as far as known.

    `promised` are the VMs that are expected on hosts and not yet shown.
    """
    left = set(traces[0].hosts).intersection(*(trace.hosts for trace in traces))
    hosts = [host for host in traces[0].hosts if host in left and host in snapshot.host_by_id]
    if len(hosts) == 1:
        return hosts[0]
    if not hosts or not traces[0].ranks:
        return None
    hosts = as_the_engine_finds(hosts)
    points = [0] * len(hosts)
    for weights, factor in chain(_ours(traces, hosts), _engines_own(snapshot, vm, hosts, promised)):
        points = list(map(add, points, points_of(weights, factor)))
    return hosts[points.index(max(points))]


def _ours(traces: Sequence[Trace], hosts: Sequence[str]) -> Iterator[tuple[Sequence[int], int]]:
    """The ranks of our weights with their factors."""
    for trace in traces:
        ranks = trace.by_host()
        yield [ranks[host] for host in hosts], trace.factor


def _engines_own(
    snapshot: Snapshot, vm: Vm, ids: Sequence[str], promised: Mapping[str, Sequence[Vm]]
) -> Iterator[tuple[Sequence[int], int]]:
    """The engine's own weights that look at hosts alone, with their factors; lower is better.

    Source: EvenDistributionMemoryWeightPolicyUnit, EvenDistributionCPUWeightPolicyUnit,
    PreferredHostsWeightPolicyUnit.
    """
    factor = snapshot.cluster_by_id[vm.cluster].policy.get
    hosts = [snapshot.host_by_id[host] for host in ids]
    if even_memory := factor("even_memory_weight"):
        taken = {host: sum(one.memory_mb for one in vms) for host, vms in promised.items()}
        yield [taken.get(host.id, 0) - host.free_mb for host in hosts], even_memory
    if even_cpu := factor("even_cpu_weight"):
        coming = {host: sum(one.vcpus * _VCPU_PERCENT for one in vms) for host, vms in promised.items()}
        added = vm.vcpus * (_VCPU_PERCENT if vm.host is None else round(vm.usage_cpu_percent or 0))
        yield (
            [
                round(
                    (host.cpu_percent or 0)
                    + (coming.get(host.id, 0) + (added if vm.host != host.id else 0)) / host.cores
                )
                for host in hosts
            ],
            even_cpu,
        )
    if vm.migratable and vm.pinned_hosts and (preferred := factor("preferred_hosts_weight")):
        yield [int(host not in vm.pinned_hosts) for host in ids], preferred
