"""The engine's own filters CPU and VmAffinityGroups against their definitions, on random small clusters."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.answers.placement import why
from ovirt_placement.model import SchedulingPolicy, Snapshot
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.rules.built_in.affinity import filter_by_host_groups, filter_by_vm_groups
from ovirt_placement.rules.built_in.filters import (
    CPU_FILTER,
    CPU_OVERLOADED_FILTER,
    HOST_NOT_UP,
    PINNED_ELSEWHERE,
    TOO_FEW_CORES,
    filter_by_cpu_load,
    filter_by_cpus,
    filter_by_memory,
    filter_by_pins,
    filter_by_status,
)
from ovirt_placement.rules.catalogue import filters_in_force
from ovirt_placement.rules.elements.cpus import cores_of
from ovirt_placement.rules.elements.verdict import Reason, Request
from ovirt_placement.rules.failover.check import check
from tests import builders as build
from tests.builders import cluster, host, snapshot, vm
from tests.paths import VECTORS
from tests.placement.rules import strategies
from tests.placement.rules.built_in.test_engines_weights import members
from tools.conformance.vector import Vector, load
from tools.engine_conformance.product import request_of

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
    """No known with fewer cores than any VM has that is asked for, runs there, or is on its way there."""
    arriving = {(entry.vm, entry.host) for entry in state.pending}
    accepted = []
    for known in state.hosts:
        cores = known.threads if state.clusters[0].count_threads_as_cores and known.threads else known.cores
        counted = [
            vm.vcpus / vm.threads_per_core
            for vm in state.vms
            if vm.id in vms
            or (vm.host == known.id and vm.status != "wait_for_launch")
            or (vm.id, known.id) in arriving
        ]
        if max(counted) <= cores:
            accepted.append(known.id)
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


HOSTS = ("h1", "h2", "h3")


@st.composite
def busy(draw: st.DrawFn) -> Snapshot:
    """Hosts around the limits, some of which nothing is known."""
    percent = st.none() | st.sampled_from([0, 49.9, 50, 51, 79, 80, 81, 89, 90, 91, 99.9, 100])
    hosts = [
        build.host(
            name,
            cpu_percent=draw(percent),
            cores=draw(st.integers(1, 12)),
            threads=draw(st.none() | st.integers(2, 24)),
            spm=draw(st.booleans()),
            measured=draw(st.booleans()),
        )
        for name in HOSTS
    ]
    return build.snapshot(build.cluster(count_threads_as_cores=draw(st.booleans())), *hosts, build.vm("v"))


@given(busy(), st.none() | st.sampled_from(["50", "80", "90", "99", "", "ninety"]))
def test_hosts_that_use_more_than_the_limit_are_refused(state: Snapshot, limit: str | None) -> None:
    """In whole percents, rounded up; the known that manages storage bears a tenth of a CPU more."""
    most = int(limit) if limit is not None and limit.isdigit() else 90
    accepted = []
    for known in state.hosts:
        cpus = known.threads if state.clusters[0].count_threads_as_cores and known.threads else known.cores
        if known.cpu_percent is None:
            refused = known.measured
        else:
            refused = ceil((int(known.cpu_percent) * cpus + (10 if known.spm else 0)) / cpus) > most
        if not refused:
            accepted.append(known.id)
    parameters = {} if limit is None else {"HighUtilization": limit}
    verdicts = filter_by_cpu_load(state, Request(("v",), HOSTS, parameters=parameters))
    assert [verdict.host for verdict in verdicts if verdict.accepted] == accepted


@pytest.mark.parametrize(
    ("policy", "asked"),
    [
        (None, True),
        (SchedulingPolicy(filters=("AffinityFilter",)), True),
        (SchedulingPolicy(engine_filters=("CPU", "CPUOverloaded")), True),
        (SchedulingPolicy(engine_filters=("CPU", "Memory")), False),
    ],
)
def test_it_is_asked_unless_the_policy_is_known_to_lack_it(
    policy: SchedulingPolicy | None, *, asked: bool
) -> None:
    found = filters_in_force(build.cluster(scheduling_policy=policy))
    assert (CPU_OVERLOADED_FILTER in found) is asked


def test_why_says_so() -> None:
    state = build.snapshot(
        build.cluster(scheduling_properties={"HighUtilization": "80"}),
        build.host("h1", cpu_percent=81),
        build.host("h2", cpu_percent=80),
        build.vm("v"),
    )
    refused, accepted = why(state, state.vms[0], state.hosts).hosts
    assert accepted.accepted
    (reason,) = refused.reasons
    assert "its CPU is too loaded: 81 % are in use" in reason.sentence
    assert [(unit.name, unit.internal) for unit in reason.by] == [("CPUOverloaded", True)]


@pytest.mark.parametrize(("percent", "open_to_vms"), [(90, True), (91, False)])
def test_no_plan_goes_there_and_no_restart_counts_on_it(percent: int, *, open_to_vms: bool) -> None:
    hosts = build.host("h1"), build.host("h2", cpu_percent=percent)
    vms = build.vm("a", "h1", ha=True), build.vm("b", "h1")
    apart = build.snapshot(build.cluster(), *hosts, *vms, build.group("apart", build.APART, "a b"))
    targets = [step.target for step in make_plan(apart, build.CLUSTER).steps]
    assert targets == (["h2"] if open_to_vms else [])
    reserved = build.snapshot(build.cluster(ha_reservation=True), *hosts, *vms)
    assert check(reserved, build.CLUSTER).safe is open_to_vms


FILTERS = (filter_by_status, filter_by_memory, filter_by_cpus, filter_by_pins)


def reasons(state: Snapshot, vms: str, place: str = "h1") -> tuple[Reason, ...]:
    request = Request(tuple(vms.split()), (place,))
    verdicts = [verdict for ask in FILTERS for verdict in ask(state, request)]
    assert all(verdict.accepted == (not verdict.reasons) for verdict in verdicts)
    return tuple(reason for verdict in verdicts for reason in verdict.reasons)


def test_host_that_is_not_up_is_refused() -> None:
    assert reasons(snapshot(host("h1", status="error"), vm("a")), "a") == (Reason(HOST_NOT_UP, host="h1"),)


def test_only_a_vm_that_cannot_be_migrated_is_bound_to_its_hosts() -> None:
    parts = (host("h1"), host("h2"))
    bound = vm("a", migratable=False, pinned_hosts=("h2",))
    assert reasons(snapshot(*parts, bound), "a") == (Reason(PINNED_ELSEWHERE, vm="a"),)
    assert reasons(snapshot(*parts, bound), "a", "h2") == ()
    assert reasons(snapshot(*parts, vm("a", pinned_hosts=("h2",))), "a") == ()


def test_host_that_is_not_known_is_not_judged() -> None:
    assert reasons(snapshot(vm("a")), "a", "h9") == ()


def test_a_vm_needs_as_many_cores_as_it_has_cpus_and_several_need_no_more_than_the_largest() -> None:
    parts = (host("h1", cores=4, threads=8), vm("a", vcpus=4), vm("b", vcpus=5))
    refused = Reason(TOO_FEW_CORES, vm="b", host="h1", number=4)
    assert reasons(snapshot(*parts), "a") == ()
    assert reasons(snapshot(*parts), "a b") == (refused,)
    assert reasons(snapshot(*parts, vm("c", "h1", vcpus=4)), "a") == ()
    threads = cluster(count_threads_as_cores=True)
    assert reasons(snapshot(threads, *parts), "a b") == ()
    assert reasons(snapshot(threads, host("h1", cores=4), vm("a", vcpus=5)), "a")[0].number == 4


ENGINES_OWN = {
    "vm_affinity_filter": filter_by_vm_groups,
    "vm_to_host_filter": filter_by_host_groups,
}
ASKED = [vector for vector in load(VECTORS) if vector.kind in ENGINES_OWN]


def test_there_are_vectors() -> None:
    assert {vector.kind for vector in ASKED} == set(ENGINES_OWN)


@pytest.mark.parametrize("vector", ASKED, ids=lambda vector: str(vector.name))
def test_the_answer_is_the_engines_own(vector: Vector) -> None:
    verdicts = ENGINES_OWN[vector.kind](vector.snapshot, request_of(vector))
    accepted = {verdict.host for verdict in verdicts if verdict.accepted}
    assert accepted == set(vector.content["expected"]["hosts"])
