"""Draws small states of two clusters, with all that the engine's own units look at, and questions."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st

from ovirt_placement.model import AffinityGroup, AffinityRule, Cluster, Host, Pending, Snapshot, Vm
from tests import builders

#: Beginnings of ids, some of which are negative numbers to Java, and some ends that share a hash bin.
_BEGINNINGS = "0179aef"
_CLUSTERS = ("c1000000-0000-4000-8000-000000000000", "c2000000-0000-4000-8000-000000000000")


def ids(kind: str, count: int) -> st.SearchStrategy[list[str]]:
    """Ids of engines; `kind` is a hexadecimal digit that shows them from others."""
    return st.tuples(
        st.lists(st.sampled_from(_BEGINNINGS), min_size=count, max_size=count),
        st.lists(st.sampled_from("089f"), min_size=count, max_size=count),
    ).map(
        lambda drawn: [
            f"{first}{kind}00000{at}-0000-4000-{half}000-0000000000{kind}{at}"
            for at, (first, half) in enumerate(zip(*drawn, strict=True))
        ]
    )


@st.composite
def states(draw: st.DrawFn) -> Snapshot:
    hosts = draw(_hosts())
    vms = draw(_vms(hosts))
    return Snapshot(
        clusters=tuple(draw(_cluster(cluster_id)) for cluster_id in _CLUSTERS),
        hosts=hosts,
        vms=vms,
        affinity_groups=draw(_groups(hosts, vms)),
        affinity_labels=(),
        pending=draw(_pending(hosts, vms)),
    )


@st.composite
def questions(draw: st.DrawFn) -> tuple[Snapshot, list[Vm], list[Host]]:
    """VMs that are scheduled together, and candidate hosts of the first one's cluster."""
    snapshot = draw(states().filter(lambda one: bool(one.vms) and bool(one.hosts)))
    cluster = draw(st.sampled_from([host.cluster for host in snapshot.hosts]))
    hosts = [host for host in snapshot.hosts if host.cluster == cluster]
    vms = [vm for vm in snapshot.vms if vm.cluster == cluster]
    if not vms:
        hosts, vms = [host for host in snapshot.hosts if host.cluster == snapshot.vms[0].cluster], []
    vms = vms or [snapshot.vms[0]]
    hosts = hosts or [snapshot.hosts[0]]
    chosen = draw(st.lists(st.sampled_from(vms), min_size=1, max_size=3, unique_by=lambda vm: vm.id))
    return snapshot, chosen, sorted(hosts, key=lambda host: host.id)


@st.composite
def _cluster(draw: st.DrawFn, cluster_id: str) -> Cluster:
    return builders.cluster(
        cluster_id,
        ha_reservation=draw(st.booleans()),
        count_threads_as_cores=draw(st.booleans()),
        scheduling_properties=draw(
            st.sampled_from(({}, {}, {"VCpuToPhysicalCpuRatio": "2"}, {"VCpuToPhysicalCpuRatio": "0.5"}))
        ),
    )


@st.composite
def _hosts(draw: st.DrawFn) -> tuple[Host, ...]:
    return tuple(draw(_host(host_id)) for host_id in draw(st.integers(1, 4).flatmap(lambda n: ids("a", n))))


@st.composite
def _host(draw: st.DrawFn, host_id: str) -> Host:
    cores = draw(st.integers(1, 5))
    return builders.host(
        host_id,
        cluster=draw(st.sampled_from((_CLUSTERS[0], *_CLUSTERS))),
        free_mb=draw(st.sampled_from((0, 1, 1125, 1126, 1127, 2252, 4096, 8192)) | st.integers(0, 9000)),
        cpu_percent=draw(st.none() | st.integers(0, 100)),
        cores=cores,
        threads=draw(st.none() | st.just(2 * cores)),
        memory_free_mb=draw(st.none() | st.integers(0, 6000)),
        swap_free_mb=draw(st.none() | st.integers(0, 2000)),
        free_huge_pages=draw(
            st.dictionaries(st.sampled_from((2048, 1048576)), st.integers(0, 600), max_size=2)
        ),
        spm=draw(st.booleans()),
    )


@st.composite
def _vms(draw: st.DrawFn, hosts: tuple[Host, ...]) -> tuple[Vm, ...]:
    return tuple(draw(_vm(vm_id, hosts)) for vm_id in draw(st.integers(1, 5).flatmap(lambda n: ids("b", n))))


@st.composite
def _vm(draw: st.DrawFn, vm_id: str, hosts: tuple[Host, ...]) -> Vm:
    host = draw(st.none() | st.sampled_from(hosts))
    resting, running = ("down", "suspended"), ("up", "paused", "wait_for_launch", "migrating")
    threads = draw(st.sampled_from((1, 1, 2)))
    memory_mb = draw(st.sampled_from((512, 1024, 1024, 2048, 4096)))
    hugepages = draw(st.sampled_from((None, None, "2048", "1048576", "many")))
    return builders.vm(
        vm_id,
        None if host is None else host.id,
        cluster=draw(st.sampled_from(_CLUSTERS)) if host is None else host.cluster,
        status=draw(st.sampled_from(resting if host is None else running)),
        memory_mb=memory_mb,
        guaranteed_mb=draw(st.sampled_from((512, memory_mb))),
        vcpus=threads * draw(st.integers(1, 4)),
        threads_per_core=threads,
        io_threads=draw(st.integers(0, 2)),
        video_mb=draw(st.sampled_from((0, 16, 72))),
        usage_cpu_percent=draw(st.none() | st.integers(0, 100)),
        usage_mem_percent=draw(st.none() | st.integers(0, 100)),
        ha=draw(st.booleans()),
        migratable=draw(st.booleans()),
        pinned_hosts=draw(st.sampled_from(((), tuple(one.id for one in hosts[:1])))),
        custom_properties={} if hugepages is None else {"hugepages": hugepages},
    )


@st.composite
def _groups(draw: st.DrawFn, hosts: tuple[Host, ...], vms: tuple[Vm, ...]) -> tuple[AffinityGroup, ...]:
    rule = st.builds(AffinityRule, enabled=st.booleans(), positive=st.booleans(), enforcing=st.booleans())
    rule = rule.filter(lambda one: one.enabled or not (one.positive or one.enforcing))
    count = draw(st.integers(0, 4))
    return tuple(
        builders.group(
            group_id,
            draw(rule),
            " ".join(draw(_some(vms))),
            hosts_rule=draw(rule),
            hosts=" ".join(draw(_some(hosts))),
            cluster=draw(st.sampled_from(_CLUSTERS)),
            priority=draw(st.sampled_from((1.0, 1.00000004, 1.0000001, 2.0))),
        )
        for group_id in (draw(ids("c", count)) if count else ())
    )


def _some(parts: tuple[Any, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from([part.id for part in parts]), unique=True, max_size=4)


@st.composite
def _pending(draw: st.DrawFn, hosts: tuple[Host, ...], vms: tuple[Vm, ...]) -> tuple[Pending, ...]:
    """Some VMs that are down are about to start, and who migrates has a target."""
    return tuple(
        builders.pending(vm.id, draw(st.sampled_from(hosts)).id)
        for vm in vms
        if vm.status == "migrating" or (vm.host is None and draw(st.booleans()))
    )
