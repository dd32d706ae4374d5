"""The engine's own filters: what they say of a host, and who asks them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.answers.placement import why
from ovirt_placement.model import Host, Pending, SchedulingPolicy, Snapshot, Vm
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.rules.catalogue import filters_in_force
from ovirt_placement.rules.elements.resources import cores_of
from ovirt_placement.rules.elements.verdict import Reason, Request
from ovirt_placement.rules.engine_affinity import filter_by_host_groups, filter_by_vm_groups
from ovirt_placement.rules.engine_filters import (
    CPU_FILTER,
    CPU_OVERLOADED_FILTER,
    FLAGS_NOT_READ,
    HOST_NOT_UP,
    PINNED_ELSEWHERE,
    TOO_FEW_CORES,
    filter_by_cpus,
    filter_by_memory,
    filter_by_pinning,
    filter_by_pins,
    filter_by_status,
    note_flags,
)
from ovirt_placement.rules.engine_weights import score_by_vm_groups
from ovirt_placement.rules.failover.check import check
from tests import builders as build
from tests.builders import CLUSTER, cluster, host, snapshot, vm
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
        build.cluster(scheduling_properties={"HighUtilization": "80"}), build.host("h1", cpu_percent=81),
        build.host("h2", cpu_percent=80), build.vm("v"),
    )  # fmt: skip
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
    assert (reasons(snapshot(*parts), "a"), reasons(snapshot(*parts), "a b")) == ((), (refused,))
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


# -- CPUs of VMs' own are counted as the engine counts them: held against its rules, written down again here.
class Unit:
    """One logical CPU of a host, as the engine's VdsCpuUnit."""

    def __init__(self, socket: int, core: int) -> None:
        self.socket, self.core, self.owner = socket, core, ""


class Topology:
    """The engine's handing out of CPUs, unit by unit."""

    def __init__(self, of: Host) -> None:
        threads = (of.threads or of.cores) // of.cores
        cores = of.cores // of.sockets
        self.units = [
            Unit(socket, core)
            for socket in range(of.sockets)
            for core in range(cores)
            for _ in range(threads)
        ]

    def _socket(self) -> int:
        best, most = self.units[0].socket, 0
        for socket in dict.fromkeys(unit.socket for unit in self.units):
            free = sum(unit.socket == socket and not unit.owner for unit in self.units)
            if free > most:
                best, most = socket, free
        return best

    def place(self, one: Vm) -> bool:
        """Whether all its CPUs were found; those found stay taken, as in the engine's copy."""
        sockets, threads = one.cpu_sockets, one.threads_per_core
        per_socket = one.vcpus // sockets // threads
        taken: list[list[Unit]] = []  # groups: a virtual core's units, or a physical core
        online = len({unit.socket for unit in self.units})
        for _ in range(online):
            if sockets <= 0:
                break
            chosen = self._socket()
            count = 0
            for core in dict.fromkeys(unit.core for unit in self.units if unit.socket == chosen):
                here = [unit for unit in self.units if (unit.socket, unit.core) == (chosen, core)]
                if one.cpu_pinning == "isolate_threads":
                    if all(not unit.owner for unit in here) and len(taken) < one.vcpus:
                        self._own(here, one.id)
                        taken.append(here)
                        count += len(taken) % threads == 0
                    continue
                free = [unit for unit in here if not unit.owner]
                while len(free) >= threads and len(taken) * threads < one.vcpus:
                    mine, free = free[:threads], free[threads:]
                    self._own(mine, one.id)
                    taken.append(mine)
                    count += 1
            sockets -= count // per_socket
            for _ in range(count % per_socket):
                self._own(taken.pop(), "")
        if sockets > 0:
            return False
        found = len(taken) if one.cpu_pinning == "isolate_threads" else sum(map(len, taken))
        return found == one.vcpus

    def _own(self, units: list[Unit], owner: str) -> None:
        for unit in units:
            unit.owner = owner

    def unavailable(self, *, threads: bool) -> int:
        if threads:
            return sum(bool(unit.owner) for unit in self.units)
        cores: dict[tuple[int, int], bool] = {}
        for unit in self.units:
            key = (unit.socket, unit.core)
            cores[key] = cores.get(key, True) and bool(unit.owner)
        return sum(cores.values())


def exclusive(one: Vm) -> bool:
    return one.cpu_pinning in {"dedicated", "isolate_threads"}


def judged(state: Snapshot, asked: Vm, on: Host) -> tuple[bool, bool]:
    """Whether a VM gets CPUs of its own, if it wants such; and what CPUPolicyUnit says.

    That is: CPUs less those of VMs' own less those of the largest that shares are not below zero.
    """
    threads = state.clusters[0].count_threads_as_cores
    topology = Topology(on)
    there = [one for one in state.vms if one.host == on.id]
    coming = [state.vm_by_id[one.vm] for one in state.pending if one.host == on.id]
    for one in sorted({each.id: each for each in (*there, *coming)}.values(), key=lambda each: each.id):
        if exclusive(one) and (one.id != asked.id or one.host == on.id):
            assert topology.place(one)
    if asked.host != on.id and exclusive(asked) and not topology.place(asked):
        return False, False
    cpus = (on.threads or on.cores) if threads else on.cores
    shared = [one.vcpus // one.threads_per_core for one in (asked, *there, *coming) if not exclusive(one)]
    return True, cpus - topology.unavailable(threads=threads) - max(shared, default=0) >= 0


@st.composite
def hosts_of_any_shape(draw: st.DrawFn) -> Host:
    sockets, cores, threads = (draw(st.integers(1, most)) for most in (3, 4, 2))
    return host("h", cores=sockets * cores, threads=sockets * cores * threads, sockets=sockets)


@st.composite
def vms_of_any_shape(draw: st.DrawFn, name: str) -> Vm:
    sockets, cores, threads = (draw(st.integers(1, most)) for most in (2, 3, 2))
    policy = draw(st.sampled_from(["none", "dedicated", "isolate_threads", "manual"]))
    return vm(
        name,
        vcpus=sockets * cores * threads,
        cpu_sockets=sockets,
        threads_per_core=threads,
        cpu_pinning=policy,
    )


@given(data=st.data(), on=hosts_of_any_shape(), threads=st.booleans(), pending=st.booleans())
def test_the_filter_says_what_the_engine_says(
    data: st.DataObject, on: Host, threads: bool, pending: bool
) -> None:
    running: list[Vm] = []
    topology = Topology(on)
    for number in range(data.draw(st.integers(0, 3))):
        one = data.draw(vms_of_any_shape(f"v{number}"))
        if exclusive(one) and not topology.place(one):
            break  # the engine would not have let it run here
        running.append(replace(one, host="h", status="up"))
    asked = data.draw(vms_of_any_shape("w"))
    state = snapshot(cluster(count_threads_as_cores=threads), on, *running, asked)
    if pending and running:
        last = replace(running[-1], host=None, status="down")
        vms = (*state.vms[: len(running) - 1], last, asked)
        state = replace(state, vms=vms, pending=(Pending(vm=last.id, host="h"),))
    request = Request(vms=("w",), candidate_hosts=("h",))
    (own,), (verdict,) = filter_by_pinning(state, request), filter_by_cpus(state, request)
    assert (own.accepted, verdict.accepted) == judged(state, asked, on)


CASE = snapshot(
    cluster(ha_reservation=True), host("h1", cores=16), host("h2", cores=16),
    vm("hp", "h1", vcpus=14, cpu_pinning="dedicated"), vm("x", "h2", vcpus=4, ha=True),
)  # fmt: skip


@pytest.mark.parametrize(("policy", "accepted"), [("none", True), ("dedicated", False), ("siblings", False)])
def test_a_restart_needs_cpus_that_are_nobodys_own(policy: str, accepted: bool) -> None:
    state = replace(CASE, vms=(replace(CASE.vms[0], cpu_pinning=policy), CASE.vms[1]))
    (verdict,) = filter_by_cpus(state, Request(vms=("x",), candidate_hosts=("h1",)))
    assert verdict.accepted is accepted
    assert check(state, CLUSTER).safe is accepted


def test_a_vm_that_has_more_cpus_of_its_own_than_its_host_leaves_none() -> None:
    grown = replace(CASE.vms[0], vcpus=20)
    state = replace(CASE, vms=(grown, replace(CASE.vms[1], vcpus=1, cpu_pinning="dedicated", host=None)))
    found = filter_by_pinning(state, Request(vms=("x",), candidate_hosts=("h1", "h2")))
    assert [one.accepted for one in found] == [False, True]


def test_a_vm_that_takes_a_whole_host_comes_to_none_with_cpus_given_away() -> None:
    whole = vm("r", cpu_pinning="resize_and_pin_numa")
    request = Request(vms=("r",), candidate_hosts=("h1", "h2"))
    found = filter_by_pinning(replace(CASE, vms=(*CASE.vms, whole)), request)
    assert [one.accepted for one in found] == [False, True]


def test_of_a_vm_with_its_hosts_cpu_the_flags_are_said_not_to_be_read() -> None:
    runs = replace(CASE, vms=(replace(CASE.vms[1], host_passthrough=True),))
    found = note_flags(runs, Request(vms=("x",), candidate_hosts=("h1", "h2")))
    assert [one.accepted for one in found] == [True, True]
    assert [[reason.kind for reason in one.reasons] for one in found] == [[FLAGS_NOT_READ], []]
