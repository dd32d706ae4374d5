"""The engine's own filters CPU and VmAffinityGroups against their definitions, on random small clusters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.built_in.affinity import filter_by_vm_groups
from ovirt_placement.rules.built_in.filters import CPU_FILTER, filter_by_cpus
from ovirt_placement.rules.cpus import cores_of
from ovirt_placement.rules.verdict import Request
from tests import builders as build
from tests.placement.rules import strategies
from tests.placement.rules.built_in.test_engines_weights import members

SOME_VMS = st.lists(st.sampled_from(strategies.VMS), min_size=1, max_size=3, unique=True).map(tuple)


@st.composite
def crowded(draw: st.DrawFn) -> Snapshot:
    """Hosts of few cores, and VMs that have about as many."""
    hosts = [
        build.host(name, cores=draw(st.integers(1, 4)), threads=draw(st.none() | st.integers(2, 8)))
        for name in strategies.HOSTS
    ]
    vms = []
    for name in strategies.VMS:
        at = draw(st.none() | st.sampled_from(strategies.HOSTS))
        status = draw(st.sampled_from(["up", "paused", "wait_for_launch"])) if at else "down"
        threads = draw(st.integers(1, 2))
        cores = draw(st.sampled_from([1, 1, 1, 2, 3, 5]))
        vms.append(build.vm(name, at, status=status, vcpus=threads * cores, threads_per_core=threads))
    pending = [
        build.pending(vm, draw(st.sampled_from(strategies.HOSTS)))
        for vm in sorted(draw(st.sets(st.sampled_from(strategies.VMS), max_size=2)))
    ]
    return build.snapshot(build.cluster(count_threads_as_cores=draw(st.booleans())), *hosts, *vms, *pending)


@given(crowded(), SOME_VMS)
def test_cpu(state: Snapshot, vms: tuple[str, ...]) -> None:
    """No host with fewer cores than any VM has that is asked for, runs there, or is on its way there."""
    arriving = {(entry.vm, entry.host) for entry in state.pending}
    accepted = []
    for host in state.hosts:
        cores = host.threads if state.clusters[0].count_threads_as_cores and host.threads else host.cores
        counted = [
            vm.vcpus / vm.threads_per_core
            for vm in state.vms
            if vm.id in vms
            or (vm.host == host.id and vm.status != "wait_for_launch")
            or (vm.id, host.id) in arriving
        ]
        if max(counted) <= cores:
            accepted.append(host.id)
    verdicts = filter_by_cpus(state, Request(vms, strategies.HOSTS))
    assert [verdict.host for verdict in verdicts if verdict.accepted] == accepted


@given(crowded())
def test_cpu_says_the_same_wherever_others_are_while_nobody_is_too_large(state: Snapshot) -> None:
    cluster = state.clusters[0]
    too_large = any(
        vm.vcpus / vm.threads_per_core > cores_of(state.host_by_id[host], cluster)
        for vm in state.vms
        for host in (vm.host, *(entry.host for entry in state.pending if entry.vm == vm.id))
        if host is not None
        and not (vm.status == "wait_for_launch" and host not in state.pending_hosts.get(vm.id, ()))
    )
    assert CPU_FILTER.depends_on.fixed_in(state, cluster.id) is not too_large


@given(strategies.snapshots(), SOME_VMS)
def test_vm_affinity_groups(state: Snapshot, vms: tuple[str, ...]) -> None:
    """Peers that run in the cluster, and pending ones: with one that is positive, with none that is not."""
    places = {vm.id: {vm.host} for vm in state.vms if vm.host and vm.cluster == "cluster1"}
    places |= {entry.vm: {one.host for one in state.pending if one.vm == entry.vm} for entry in state.pending}
    hard = [one for one in state.affinity_groups if one.vms_rule.enabled and one.vms_rule.enforcing]
    mine = [one for one in hard if members(state, one) & {*vms}]
    wanted, unwanted = set[str](), set[str]()
    for one in mine:
        peers = members(state, one) - {*vms}
        found = {host for peer in peers for host in places.get(peer, ()) if host}
        if one.vms_rule.positive:
            wanted |= found
        else:
            unwanted |= found
    parted = any(not one.vms_rule.positive and len(members(state, one) & {*vms}) > 1 for one in mine)
    allowed = set() if parted else (wanted or {*strategies.HOSTS}) - unwanted
    verdicts = filter_by_vm_groups(state, Request(vms, strategies.HOSTS))
    assert {verdict.host for verdict in verdicts if verdict.accepted} == allowed & {*strategies.HOSTS}
