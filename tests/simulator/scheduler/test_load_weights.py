"""Even distribution of CPU and memory, against the definitions of the engine's weight units."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from struct import pack, unpack

from hypothesis import given, settings

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_simulator.scheduler import weights
from tests.engine_memory import taken_mb
from tests.examples import examples
from tests.simulator.scheduler.clusters import questions
from tests.simulator.scheduler.test_capacity import Question, pending_on


def half_up(number: Fraction) -> int:
    return floor(number + Fraction(1, 2))


def demand(vm: Vm) -> int:
    """Percent of a CPU: what is measured where it runs, else 10 for each vCPU."""
    known = vm.host is not None and vm.usage_cpu_percent is not None
    return vm.vcpus * (int(vm.usage_cpu_percent or 0) if known else 10)


def load(state: Snapshot, host: Host, vms: list[Vm]) -> int:
    """EvenDistributionCPUWeightPolicyUnit.calcHostScore, rounded."""
    cluster = state.cluster_by_id[host.cluster]
    cpus = host.threads if cluster.count_threads_as_cores and host.threads else host.cores
    coming = [one for one in vms if one.host != host.id] + pending_on(state, host)
    total = int(host.cpu_percent or 0) * cpus + (10 if host.spm else 0) + sum(map(demand, coming))
    ratio = Fraction(cluster.scheduling_properties.get("VCpuToPhysicalCpuRatio", "0"))
    there = [one for one in state.vms if one.host == host.id and one.status != "wait_for_launch"]
    crowded = ratio and Fraction(sum(one.vcpus for one in there + coming), cpus) >= ratio
    return half_up((1000 if crowded else 1) * Fraction(total, cpus))


@settings(max_examples=examples(60))
@given(questions())
def test_even_cpu(question: Question) -> None:
    state, vms, hosts = question
    loads = {one.id: load(state, one, vms) for one in hosts if one.cpu_percent is not None}
    expected = dict.fromkeys((one.id for one in hosts), 1000)
    for host_id, own in loads.items():
        least, most = min(loads.values()), max(loads.values())
        expected[host_id] = 1 if least == most else half_up(1 + Fraction(own - least, most - least) * 999)
    assert weights.even_cpu(state, vms, hosts) == expected


def single(number: float) -> float:
    return float(unpack("f", pack("f", number))[0])


@settings(max_examples=examples(60))
@given(questions())
def test_even_memory(question: Question) -> None:
    """In single precision, as the engine reckons; a cluster of which one MiB is free divides by nothing."""
    state, vms, hosts = question
    most = max(one.free_mb for one in hosts)
    found = weights.even_memory(state, vms, hosts)
    for one in hosts:
        left = one.free_mb - sum(taken_mb(each) for each in vms if each.host != one.id)
        if most != 1:
            share = single(single((left - 1) * 999) / (most - 1))
            assert found[one.id] == 1000 - half_up(Fraction(share))
        elif left == 1:
            assert found[one.id] == 1000
