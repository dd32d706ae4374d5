"""The HA check, exact both ways: "safe" is an order of starts that every filter lets through."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import Host, PlacementKey, SchedulingPolicy, Snapshot, Vm
from ovirt_placement.rules.failover.check import check
from tests import builders as build
from tests.builders import APART, CLUSTER, SOFT_APART, TOGETHER, snapshot
from tests.examples import examples
from tests.placement.rules.failover.restarting import passes, survives

HOSTS = ("h1", "h2", "h3", "h4")
VMS = ("a", "b", "c", "d")
FOREIGN = "x"
GROUPS = st.sampled_from([TOGETHER, TOGETHER, APART, APART, SOFT_APART])
HOST_RULES = st.sampled_from([build.DISABLED, build.DISABLED, TOGETHER, APART])
KEYED = SchedulingPolicy(filters=("PlacementKeyFilter",))


@st.composite
def hosts(draw: st.DrawFn, name: str) -> Host:
    return build.host(
        name,
        memory_mb=draw(st.sampled_from([4096, 16384])),
        free_mb=draw(st.sampled_from([-500, 2000, 3000, 5000, 9000])),
        memory_free_mb=draw(st.sampled_from([None, 2000, 4000, 6000])),
        swap_free_mb=draw(st.sampled_from([None, 0, 1000])),
        cores=draw(st.sampled_from([2, 4])),
        status=draw(st.sampled_from(["up", "up", "up", "up", "maintenance", "non_operational"])),
    )


@st.composite
def vms(draw: st.DrawFn, name: str) -> Vm:
    at = draw(st.sampled_from((*HOSTS, "h1", "h2", None)))
    to = draw(st.sampled_from((None, None, None, *HOSTS))) if at else None
    return build.vm(
        name,
        at,
        ha=draw(st.sampled_from([True, True, True, False])),
        needs_mb=draw(st.sampled_from([1000, 2000, 4000])),
        usage_mem_percent=draw(st.sampled_from([None, 10, 100])),
        vcpus=draw(st.sampled_from([1, 1, 4])),
        migratable=draw(st.sampled_from([True, True, True, False])),
        pinned_hosts=draw(st.sampled_from([(), ("h1", "h2")])),
        **({"status": "migrating", "migrating_to": to} if to not in {None, at} else {}),
    )


def keys(draw: st.DrawFn) -> tuple[PlacementKey, ...]:
    """What a VM wants of hosts; a full host may be what it wants."""

    def key(level: str, resource: str, name: str, value: float, weight: float | None) -> PlacementKey:
        return PlacementKey(
            level=level, resource=resource, key_class="system", name=name, value=value, weight=weight
        )

    weights = st.sampled_from([-30.0, 40.0, 100.0])
    names = st.sampled_from(["SSD", "#RAM", "#CPU"])
    wanting = draw(st.sets(st.sampled_from(VMS), max_size=3))
    return (
        *(key("node", host, "SSD", draw(st.sampled_from([0.0, 1.0])), None) for host in HOSTS),
        *(key("server", vm, draw(names), 1.0, draw(weights)) for vm in sorted(wanting)),
    )


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    policy = draw(st.sampled_from([None, SchedulingPolicy(), KEYED, KEYED]))
    refusing = draw(st.integers(0, 3)) == 0 and policy is not None
    return {
        "scheduling_policy": policy,
        "scheduling_properties": {"affinity_missing_unit": "reject"} if refusing else {},
    }


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    members = st.sets(st.sampled_from(VMS), min_size=2, max_size=3).map(lambda some: " ".join(sorted(some)))
    listed = st.sets(st.sampled_from(HOSTS), max_size=3).map(lambda some: " ".join(sorted(some)))
    drawn = [draw(vms(vm)) for vm in VMS]
    state = snapshot(
        build.cluster(**draw(policies())),
        build.cluster("cluster2"),
        *(draw(hosts(name)) for name in HOSTS),
        build.host("far", cluster="cluster2"),
        *drawn,
        build.vm(FOREIGN, "far", cluster="cluster2"),
        build.label("foreign", FOREIGN),
        *(
            build.group(
                f"g{number}",
                draw(GROUPS),
                draw(members),
                hosts_rule=draw(HOST_RULES),
                hosts=draw(listed),
                vm_labels=draw(st.sampled_from([(), (), (), ("foreign",)])),
            )
            for number in range(draw(st.integers(0, 3)))
        ),
        *(build.pending(vm.id, draw(st.sampled_from(HOSTS))) for vm in drawn if draw(st.integers(0, 5)) == 0),
    )
    return replace(state, placement_keys=keys(draw))


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(worlds(), st.integers(1, 2))
def test_safe_is_an_order_of_starts_that_all_filters_let_through(state: Snapshot, failures: int) -> None:
    answering = {"up", "preparing_for_maintenance", "non_operational"}
    hosts = state.hosts_of_cluster[CLUSTER]
    failing = [host.id for host in hosts if host.status in answering]
    silent = tuple(host.id for host in hosts if host.id not in failing)
    gone = {vm.id for vm in state.vms if vm.ha and vm.host in silent}
    found = check(state, CLUSTER, failures)
    sets = [failed for size in range(1, failures + 1) for failed in combinations(failing, size)]
    lost = [failed for failed in sets if not survives(state, failed)]
    smallest = [one for one in lost if not any(set(other) < set(one) for other in lost)]
    assert [loss.hosts for loss in found.losses] == smallest
    assert found.safe is (not lost and not gone)
    assert {one.vm for one in found.lost} == gone
    assert not gone or all(one.home for one in found.lost) == survives(state, silent)
    assert (found.unjudged, found.unknown) == (0, ())
    for one in found.survivals:
        assert passes(state, one.hosts, one.homes)
