"""The engine's own filters: what they say of a host, and who asks them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.answers.placement import why
from ovirt_placement.model import SchedulingPolicy, Snapshot
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.rules.catalogue import filters_in_force
from ovirt_placement.rules.elements.resources import cores_of
from ovirt_placement.rules.elements.verdict import Reason, Request
from ovirt_placement.rules.engine_affinity import filter_by_host_groups, filter_by_vm_groups
from ovirt_placement.rules.engine_filters import (
    CPU_FILTER,
    CPU_OVERLOADED_FILTER,
    HOST_NOT_UP,
    PINNED_ELSEWHERE,
    TOO_FEW_CORES,
    filter_by_cpus,
    filter_by_memory,
    filter_by_pins,
    filter_by_status,
)
from ovirt_placement.rules.engine_weights import score_by_vm_groups
from ovirt_placement.rules.failover.check import check
from tests import builders as build
from tests.builders import cluster, host, snapshot, vm
from tests.paths import VECTORS
from tests.placement.rules import strategies
from tools.conformance import Vector, load
from tools.engine_conformance.answers import request_of


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


ENGINES_OWN = {"vm_affinity_filter": filter_by_vm_groups, "vm_to_host_filter": filter_by_host_groups}
ASKED = [vector for vector in load(VECTORS) if vector.kind in ENGINES_OWN]


def test_there_are_vectors() -> None:
    assert {vector.kind for vector in ASKED} == set(ENGINES_OWN)


@pytest.mark.parametrize("vector", ASKED, ids=lambda vector: str(vector.name))
def test_the_answer_is_the_engines_own(vector: Vector) -> None:
    verdicts = ENGINES_OWN[vector.kind](vector.snapshot, request_of(vector))
    accepted = {verdict.host for verdict in verdicts if verdict.accepted}
    assert accepted == set(vector.content["expected"]["hosts"])


def test_a_peer_that_is_pending_counts_as_movable() -> None:
    peers = vm("coming", migratable=False), vm("there", "h2")
    with_peers = build.group("g", build.SOFT_TOGETHER, "new coming there")
    state = snapshot(host("h1"), host("h2"), vm("new"), *peers, build.pending("coming", "h1"), with_peers)
    assert score_by_vm_groups(state, Request(("new",), ("h1", "h2"))) == {"h1": 1, "h2": 1}
