"""The weight of HA reservation: what counts of a host, and the order that follows."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.ha import HA_RESOURCES_HERE, HA_VMS_HERE, rank_hosts
from ovirt_placement.rules.verdict import Reason, Request
from tests.builders import CLUSTER, cluster, host, needed_mb, pending, snapshot, vm
from tests.placement.rules.strategies import HOSTS, VMS, snapshots

RESERVING = cluster(ha_reservation=True)
THREE_HOSTS = (host("h1"), host("h2"), host("h3"))
BY_VMS = {"ha_measure": "vms"}


def ranks(state: Snapshot, vm_id: str, **parameters: str) -> dict[str, int]:
    weights = rank_hosts(state, Request((vm_id,), ("h1", "h2", "h3"), parameters=parameters))
    return {weight.host: weight.rank for weight in weights}


def test_one_large_vm_counts_more_than_two_small_ones() -> None:
    state = snapshot(
        RESERVING,
        *THREE_HOSTS,
        vm("new", ha=True),
        vm("large", "h1", ha=True, memory_mb=60_000),
        vm("small", "h2", ha=True, memory_mb=500),
        vm("tiny", "h2", ha=True, memory_mb=500),
    )
    assert ranks(state, "new") == {"h3": 0, "h2": 1, "h1": 2}
    assert ranks(state, "new", **BY_VMS) == {"h3": 0, "h1": 1, "h2": 2}


def test_what_is_used_is_held_against_what_the_host_has() -> None:
    state = snapshot(
        RESERVING,
        host("h1", memory_mb=10_000, cores=8),
        host("h2", memory_mb=40_000, cores=32),
        host("h3", memory_mb=20_000, cores=8),
        vm("new", ha=True),
        vm("a", "h1", ha=True, needs_mb=2000, vcpus=2),
        vm("b", "h2", ha=True, needs_mb=2000, vcpus=2),
        vm("c", "h3", ha=True, needs_mb=4000, vcpus=2),
    )
    assert ranks(state, "new") == {"h2": 0, "h1": 1, "h3": 1}
    found = {one.host: one.reasons for one in rank_hosts(state, Request(("new",), ("h1", "h2")))}
    assert found["h1"] == (Reason(HA_RESOURCES_HERE, number=22.5),)
    assert found["h2"] == (Reason(HA_RESOURCES_HERE, number=5.6),)


def test_cpus_count_as_the_cluster_counts_them() -> None:
    hosts = host("h1", cores=8, threads=16), host("h2", cores=12, threads=12), host("h3")
    vms = vm("new", ha=True), vm("a", "h1", ha=True, vcpus=4), vm("b", "h2", ha=True, vcpus=4)
    assert ranks(snapshot(RESERVING, *hosts, *vms), "new") == {"h3": 0, "h2": 1, "h1": 2}
    threads = cluster(ha_reservation=True, count_threads_as_cores=True)
    assert ranks(snapshot(threads, *hosts, *vms), "new") == {"h3": 0, "h1": 1, "h2": 2}


def test_vm_being_moved_does_not_count_on_its_own_host() -> None:
    state = snapshot(RESERVING, *THREE_HOSTS, vm("a", "h1", ha=True), vm("b", "h2", ha=True))
    assert ranks(state, "a") == {"h1": 0, "h3": 0, "h2": 1}
    assert ranks(state, "a", **BY_VMS) == {"h1": 0, "h3": 0, "h2": 1}


def test_pending_vm_counts_where_it_is_going() -> None:
    state = snapshot(
        RESERVING,
        *THREE_HOSTS,
        vm("a", ha=True),
        vm("b", ha=True),
        vm("c", "h3", ha=True),
        pending("b", "h1"),
        pending("c", "h1"),
    )
    assert ranks(state, "a") == {"h2": 0, "h3": 0, "h1": 1}
    counted = rank_hosts(state, Request(("a",), ("h1",), parameters=BY_VMS))
    assert counted[0].reasons == (Reason(HA_VMS_HERE, number=2),)


def test_scaling_down_makes_hosts_tie() -> None:
    state = snapshot(
        RESERVING,
        *THREE_HOSTS,
        vm("new", ha=True),
        vm("a", "h1", ha=True),
        vm("b", "h1", ha=True),
        vm("c", "h2", ha=True),
    )
    for measure in ("vms", "resources"):
        assert ranks(state, "new", ha_measure=measure) == {"h3": 0, "h2": 1, "h1": 2}
        scaled = ranks(state, "new", ha_measure=measure, ha_weight_scale_down="100")
        assert scaled == {"h3": 0, "h2": 1, "h1": 1}


def test_a_host_with_little_in_use_does_not_tie_with_one_that_has_none() -> None:
    full = vm("full", "h1", ha=True, memory_mb=60_000, vcpus=16)
    small = vm("small", "h2", ha=True, memory_mb=16)
    hosts = host("h1"), host("h2", memory_mb=1 << 20, cores=256), host("h3")
    assert ranks(snapshot(RESERVING, *hosts, vm("new", ha=True), full, small), "new")["h2"] == 1


def test_vm_without_high_availability_ties_but_still_spares_the_failover_host() -> None:
    state = snapshot(
        RESERVING, host("h1", failover=True), host("h2"), host("h3"), vm("a"), vm("b", "h2", ha=True)
    )
    assert ranks(state, "a") == {"h2": 0, "h3": 0, "h1": 1}


SIZES = st.tuples(st.sampled_from([512, 512, 2048, 60_000]), st.sampled_from([1, 1, 2, 8]))
CAPACITIES = st.tuples(st.sampled_from([32_768, 65_536, 65_536]), st.sampled_from([8, 16, 16]))


@st.composite
def sized(draw: st.DrawFn) -> Snapshot:
    """Hosts and VMs of a few sizes, so that some are equally full."""
    drawn = draw(snapshots())
    hosts = (replace(one, memory_mb=mb, cores=n) for one in drawn.hosts for mb, n in [draw(CAPACITIES)])
    vms = (replace(one, memory_mb=mb, vcpus=n) for one in drawn.vms for mb, n in [draw(SIZES)])
    return replace(drawn, hosts=tuple(hosts), vms=tuple(vms))


@given(sized(), st.sampled_from(VMS), st.sampled_from(["1", "3", "100"]))
def test_order_is_that_of_what_the_others_use(state: Snapshot, vm_id: str, scale_down: str) -> None:
    asked = next(one for one in state.vms if one.id == vm_id)
    going = {one.id: {entry.host for entry in state.pending if entry.vm == one.id} for one in state.vms}
    there = {
        place.id: [
            one
            for one in state.vms
            if one.ha
            and one.id != vm_id
            and one.cluster == CLUSTER
            and place.id in (going[one.id] or {one.host})
        ]
        for place in state.hosts
    }
    by_resources = {
        place.id: Fraction(sum(map(needed_mb, there[place.id])), 2 * place.memory_mb)
        + Fraction(sum(one.vcpus for one in there[place.id]), 2 * place.cores)
        for place in state.hosts
    }
    by_vms = {place.id: Fraction(len(there[place.id])) for place in state.hosts}
    decides = asked.ha and state.clusters[0].ha_reservation
    for measure, figures in (("resources", by_resources), ("vms", by_vms)):
        request = Request(
            (vm_id,), HOSTS, parameters={"ha_measure": measure, "ha_weight_scale_down": scale_down}
        )
        found = {weight.host: weight.rank for weight in rank_hosts(state, request)}
        assert {*found.values()} == {*range(len({*found.values()}))}
        fullest = max(figures[place] for place in HOSTS) or 1
        for one, other in product(HOSTS, repeat=2):
            if not decides or figures[one] == figures[other]:
                assert found[one] == found[other]
            elif figures[one] < figures[other]:
                assert found[one] <= found[other]
                # A step of the scale apart, hosts do not tie; nor do one that is empty and one that is not.
                apart = 100 * (figures[other] - figures[one]) / fullest >= int(scale_down) + 1
                if apart or figures[one] == 0:
                    assert found[one] < found[other]
