"""What `why` and `where` say of a VM is what the policy units answer, in this process and through the proxy.

The clusters are generated, with draining, pinning, pending migrations, keys and policies of all kinds. What
the engine itself asks of a host is reckoned here by hand.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement import inventory
from ovirt_placement.answers import where, why
from ovirt_placement.model import Cluster, PlacementKey, SchedulingPolicy, Snapshot, Vm
from ovirt_placement.rules.catalogue import UNITS
from ovirt_placement.rules.rule import UnitKind
from ovirt_placement.units.decisions import RefusedLoudlyError, accepted_hosts, ranked_hosts
from tests import builders as build
from tests.builders import CLUSTER, TOGETHER, group, snapshot, vm
from tests.placement.rules.strategies import HOSTS, VMS, snapshots
from tests.plugins.proxy_process import running_proxy
from tests.plugins.published import Publisher

FILTERS = tuple(name for name, rule in UNITS.items() if rule.kind is UnitKind.FILTER)
WEIGHTS = tuple(name for name, rule in UNITS.items() if rule.kind is UnitKind.WEIGHT)

#: Asks a unit about hosts: what it accepts, or how it ranks them.
AskFilter = Callable[[str, Sequence[str], str, dict[str, str]], set[str]]
AskWeight = Callable[[str, Sequence[str], str, dict[str, str]], dict[str, int]]

PARAMETERS = {
    "affinity_missing_unit": st.sampled_from(["report", "reject"]),
    "ha_weight_scale_down": st.sampled_from(["1", "7", "100"]),
    "placement_final": st.sampled_from(["-10", "5"]),
    "placement_tie": st.just("engine"),
}


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    """What a cluster's policy enables, and its parameters; a policy may also be unknown."""
    filters = draw(st.sets(st.sampled_from(FILTERS)))
    weights = draw(st.dictionaries(st.sampled_from(WEIGHTS), st.integers(0, 3)))
    known = draw(st.integers(0, 5)) > 0
    return {
        "scheduling_policy": SchedulingPolicy(filters=tuple(sorted(filters)), weights=weights)
        if known
        else None,
        "scheduling_properties": draw(st.fixed_dictionaries({}, optional=PARAMETERS))
        | {"placement_tie": "engine"},
    }


@st.composite
def keys(draw: st.DrawFn) -> tuple[PlacementKey, ...]:
    """One key of the operator on all hosts and on some VMs."""

    def key(level: str, resource: str, value: float, weight: float | None) -> PlacementKey:
        return PlacementKey(
            level=level, resource=resource, key_class="system", name="SAN", value=value, weight=weight
        )

    values = st.sampled_from([0.0, 0.5, 1.0])
    placed = draw(st.sets(st.sampled_from(VMS), max_size=3))
    return (
        *(key("node", host, draw(values), None) for host in HOSTS),
        *(key("server", vm, draw(values), draw(st.sampled_from([-50.0, 60.0]))) for vm in sorted(placed)),
    )


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    state = draw(snapshots())
    policy = draw(policies())

    def ruled(one: Cluster) -> Cluster:
        return replace(one, **policy) if one.id == CLUSTER else one

    gathered = VMS[: draw(st.sampled_from([0, 2, 3]))]

    def pinned(one: Vm) -> Vm:
        pinning = draw(st.sampled_from([(), ("h1",), ("h2", "h3")]))
        there = {"host": "h1", "status": "up"} if one.id in gathered else {}
        return replace(one, pinned_hosts=pinning, **there)

    near = (group("near", TOGETHER, " ".join(gathered)),) if gathered else ()
    return replace(
        state,
        affinity_groups=(*state.affinity_groups, *near),
        pending=tuple(one for one in state.pending if one.vm not in gathered),
        clusters=tuple(map(ruled, state.clusters)),
        hosts=tuple(replace(one, free_mb=draw(st.sampled_from([512, 4096]))) for one in state.hosts),
        vms=tuple(map(pinned, state.vms)),
        placement_keys=draw(keys()),
    )


def engine_offers(state: Snapshot, vm: Vm, host_id: str) -> bool:
    """What the engine asks before any unit: a host that is up, memory, and no other pinning."""
    host = state.host_by_id[host_id]
    there = {vm.host, *(one.host for one in state.pending if one.vm == vm.id)}
    room = host_id in there or vm.memory_mb <= host.free_mb
    free = vm.migratable or not vm.pinned_hosts or host_id in vm.pinned_hosts
    return host.status == "up" and room and free


def counts(state: Snapshot, unit: str, enabled: bool) -> bool:
    """Whether `why` asks a unit: those of placement keys only where the policy enables them."""
    return enabled or not unit.startswith("PlacementKey")


def check(state: Snapshot, asked_filter: AskFilter, asked_weight: AskWeight) -> None:
    cluster = state.cluster_by_id[CLUSTER]
    policy, given_parameters = cluster.scheduling_policy, dict(cluster.scheduling_properties)
    enabled = set(policy.filters) if policy else set()
    for one in (state.vm_by_id[name] for name in VMS[:3]):
        for hosts in (HOSTS, *((host,) for host in HOSTS)):
            verdicts = why.judge(state, one, [state.host_by_id[host] for host in hosts]).hosts
            accepted = {host for host in hosts if engine_offers(state, one, host)}
            for unit in FILTERS:
                if counts(state, unit, unit in enabled):
                    accepted &= asked_filter(unit, hosts, one.id, given_parameters)
            assert {verdict.host for verdict in verdicts if verdict.accepted} == accepted
        ordered = where.order(state, one)
        left = [host for host in HOSTS if host in {found.host for found in ordered.hosts}]
        weighing = {unit for unit, factor in (policy.weights if policy else {}).items() if factor}
        for unit in WEIGHTS:
            if counts(state, unit, unit in weighing) and left:
                told = {found.host: found.weights[unit].rank for found in ordered.hosts}
                assert told == asked_weight(unit, left, one.id, given_parameters)


@pytest.fixture(scope="module")
def publisher(tmp_path_factory: pytest.TempPathFactory) -> Publisher:
    return Publisher(tmp_path_factory.mktemp("published"))


@pytest.fixture(scope="module")
def in_process(publisher: Publisher) -> Iterator[Publisher]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OVIRT_PLACEMENT_CONFIG", str(publisher.config))
        patch.setattr(inventory.client.current, "_process", type(inventory.client.current._process)())
        logging.getLogger("ovirt_placement").setLevel(logging.ERROR)
        yield publisher
        logging.getLogger("ovirt_placement").setLevel(logging.NOTSET)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(worlds())
def test_in_this_process(in_process: Publisher, state: Snapshot) -> None:
    in_process.publish(state)

    def asked_filter(unit: str, hosts: Sequence[str], vm: str, parameters: dict[str, str]) -> set[str]:
        try:
            return set(accepted_hosts(unit, hosts, vm, parameters))
        except RefusedLoudlyError:
            return set()

    def asked_weight(unit: str, hosts: Sequence[str], vm: str, parameters: dict[str, str]) -> dict[str, int]:
        return dict(ranked_hosts(unit, hosts, vm, parameters))

    check(state, asked_filter, asked_weight)


@pytest.fixture(scope="module")
def proxy(publisher: Publisher) -> Iterator[Any]:
    with running_proxy(publisher.environment) as client:
        yield client


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(worlds())
def test_through_the_proxy(publisher: Publisher, proxy: Any, state: Snapshot) -> None:
    publisher.publish(state)

    def asked_filter(unit: str, hosts: Sequence[str], vm: str, parameters: dict[str, str]) -> set[str]:
        return set(proxy.runFilters([unit], list(hosts), vm, parameters)["result"])

    def asked_weight(unit: str, hosts: Sequence[str], vm: str, parameters: dict[str, str]) -> dict[str, int]:
        found = proxy.runCostFunctions([[unit, 1]], list(hosts), vm, parameters)["result"]
        return {host: weight for host, weight, _ in found}

    check(state, asked_filter, asked_weight)


def test_a_migration_that_drains_a_host_is_accepted_by_both(in_process: Publisher, tmp_path: Path) -> None:
    state = snapshot(
        build.host("h1"), build.host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", TOGETHER, "a b")
    )
    in_process.publish(state)
    assert accepted_hosts("AffinityFilter", ["h2"], "a", {}) == ["h2"]
    (told,) = why.judge(state, state.vm_by_id["a"], [state.host_by_id["h2"]]).hosts
    assert told.accepted
    assert [reason.kind for reason in told.reasons] == ["group_moves_along"]
    among_both = why.judge(state, state.vm_by_id["a"], state.hosts).hosts
    assert [answer.accepted for answer in among_both] == [True, False]
