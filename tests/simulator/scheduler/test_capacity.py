"""Memory and CPUs, against the definitions of the engine's SlaValidator and its units."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_simulator.scheduler import filters
from tests import engine_memory
from tests.builders import cluster, host, snapshot, vm
from tests.examples import examples
from tests.simulator.scheduler.clusters import questions

Question = tuple[Snapshot, list[Vm], list[Host]]


def pending_on(snapshot: Snapshot, host: Host) -> list[Vm]:
    """Those whose resources are pending on the host: they migrate there or do not power up yet."""
    reported = {entry.vm for entry in snapshot.pending if entry.host == host.id}
    waiting = {one.id for one in snapshot.vms if one.host == host.id and one.status == "wait_for_launch"}
    return [one for one in snapshot.vms if one.id in reported | waiting]


def page_kib(vm: Vm) -> int:
    text = vm.custom_properties.get("hugepages", "")
    return int(text) if text.isdigit() else 0


def pages(vms: list[Vm]) -> dict[int, int]:
    needed: dict[int, int] = {}
    for one in vms:
        if page_kib(one):
            count = (one.memory_mb * 1024 + page_kib(one) - 1) // page_kib(one)
            needed[page_kib(one)] = needed.get(page_kib(one), 0) + count
    return needed


def own_mb(vm: Vm) -> int:
    return 0 if page_kib(vm) else vm.memory_mb


def fits(snapshot: Snapshot, host: Host, vms: list[Vm]) -> bool:
    """MemoryPolicyUnit for one host: physical memory with swap, then what may be handed out."""
    coming = [one for one in vms if one.status != "paused" and one.host != host.id]
    if not coming:
        return True
    pending = pending_on(snapshot, host)
    allocated_kib = 0
    for size, count in pages(coming).items():
        free = host.free_huge_pages.get(size, 0)
        # The engine looks the pending ones up under the number of free pages.
        free = max(free - pages(pending).get(free, 0), 0)
        allocated_kib += size * max(count - free, 0)
    allocated = (allocated_kib + 1023) // 1024
    if host.memory_free_mb is not None:
        static = sum(own_mb(one) + 64 + one.memory_mb // 512 for one in coming)
        limit = host.memory_free_mb - sum(64 + one.memory_mb // 512 for one in pending) - allocated
        if limit < 0 or static > limit + (host.swap_free_mb or 0):
            return False
    needed = sum(own_mb(one) + engine_memory.overhead_mb(one) for one in coming)
    return needed + allocated <= host.free_mb


@settings(max_examples=examples(60))
@given(questions())
def test_memory(question: Question) -> None:
    state, vms, hosts = question
    refused = filters.memory(state, vms, hosts)
    assert {one.id for one in hosts} - set(refused) == {one.id for one in hosts if fits(state, one, vms)}


@settings(max_examples=examples(60))
@given(questions())
def test_cpus(question: Question) -> None:
    """No VM there, on its way there, or to be placed there, has more cores than the host has CPUs."""
    state, vms, hosts = question
    refused = filters.cpu(state, vms, hosts)
    for one in hosts:
        threads = state.cluster_by_id[one.cluster].count_threads_as_cores
        cpus = one.threads if threads and one.threads else one.cores
        others = [other for other in state.vms if other.host == one.id] + pending_on(state, one)
        largest = max(other.vcpus / other.threads_per_core for other in vms + others)
        assert (one.id in refused) == (largest > cpus)


@pytest.mark.parametrize(
    ("policy", "counted", "fits"),
    [("none", False, 4), ("dedicated", False, 1), ("dedicated", True, 2), ("isolate_threads", True, 0)],
)
def test_cpus_that_are_a_vms_own_are_nobody_elses(policy: str, counted: bool, fits: int) -> None:
    """CPUPolicyUnit: of 4 cores with 2 threads each, 6 vCPUs of its own leave 1 core, or 2 threads."""
    own = vm("own", "h1", vcpus=6, threads_per_core=2, cpu_pinning=policy, cpu_sockets=1)
    state = snapshot(cluster(count_threads_as_cores=counted), host("h1", cores=4, threads=8), own)
    hosts = list(state.hosts)
    taken = [count for count in range(1, 9) if not filters.cpu(state, [vm("new", vcpus=count)], hosts)]
    assert max(taken, default=0) == fits
