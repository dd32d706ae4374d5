"""Recorded answers, the engine's and a JVM's, against the simulator's units, tables and conflicts."""

import json
from typing import Any

import pytest

from ovirt_simulator.scheduler import filters, weights
from ovirt_simulator.scheduler.external import ExternalUnits
from ovirt_simulator.scheduler.placing import AffinityEnforcement, Scheduler, candidates
from tests.builders import APART, TOGETHER, cluster, group, host, snapshot, vm
from tests.java_order import IDS, IN_JAVA
from tests.paths import DATA, VECTORS
from tests.simulator.core import engines
from tools.conformance import Vector, load
from tools.engine_conformance import answers
from tools.engine_conformance.comparing import as_tiers

RECORDED = [*load(VECTORS)]
FILTERS = {"vm_affinity_filter": filters.vm_affinity, "vm_to_host_filter": filters.vm_to_host}
WEIGHTS = {
    "vm_affinity_weight": weights.vm_affinity,
    "vm_to_host_weight": weights.vm_to_host,
    "ha_weight": weights.ha_reservation,
}
#: What a JVM answered, of tables with few bins and with many.
TABLES = json.loads((DATA / "java" / "selector_tables.json").read_text())


def vectors(*kinds: str) -> list[Any]:
    return [pytest.param(one, id=one.name) for one in RECORDED if one.kind in kinds]


@pytest.mark.parametrize("vector", vectors(*FILTERS))
def test_filters_accept_the_hosts_that_the_engine_accepts(vector: Vector) -> None:
    accepted = answers.left_by(FILTERS[vector.kind])(vector)
    assert {*accepted} == {*vector.content["expected"]["hosts"]}


@pytest.mark.parametrize("vector", vectors(*WEIGHTS))
def test_weights_order_hosts_as_the_engine_does(vector: Vector) -> None:
    found = as_tiers(vector, answers.weighed_by(WEIGHTS[vector.kind])(vector))
    assert found == [sorted(tier) for tier in vector.content["expected"]["tiers"]]


@pytest.mark.parametrize("vector", vectors("rank_selector"))
def test_rank_selector_prefers_the_hosts_that_the_engine_prefers(vector: Vector) -> None:
    records = [weights.Record(one["unit"], one["host"], one["weight"]) for one in vector.request["weights"]]
    factors = {unit["id"]: unit["factor"] for unit in vector.request["units"]}
    best = weights.best_host([one["id"] for one in vector.state["hosts"]], records, factors)
    assert best in vector.content["expected"]["best_any_of"]


@pytest.mark.parametrize("vector", vectors("conflicts"))
def test_conflicts_are_those_that_the_engine_finds(vector: Vector) -> None:
    found = engines.conflicts(engines.backend(vector.snapshot).state)
    assert found == vector.content["expected"]["conflicts"]


#: The simulated engine leaves soft groups alone.
HARD = [one for one in vectors("enforcer_candidates") if "--soft-" not in str(one.id)]


@pytest.mark.parametrize("vector", HARD)
def test_candidates_come_in_the_engines_order(vector: Vector) -> None:
    backend = engines.backend(vector.snapshot)
    enforcement = AffinityEnforcement(backend, Scheduler(backend, ExternalUnits(backend, None)), pytest.fail)
    cluster = backend.state.clusters[vector.request["cluster"]]
    schedulable = vector.request.get("schedulable")

    def can_leave(vm_id: str) -> bool:
        if schedulable is None:
            return enforcement.can_leave(vm_id, cluster.id)
        here = backend.state.vms[vm_id]
        return here.movable and bool(set(schedulable.get(vm_id, schedulable["*"])) - {here.host})

    ordered = (one.id for one in candidates(backend.state, cluster, backend.random.shuffle))
    rest = [one for one in dict.fromkeys(ordered) if can_leave(one)]
    tiers = vector.content["expected"]["tiers"]
    if tiers is None:
        assert sorted(rest) == sorted(vector.content["expected"]["members"])
        return
    for tier in tiers:
        assert {rest.pop(0) for _ in tier} == {*tier}
    assert rest == []


def test_a_table_gives_its_keys_as_a_jvm_did() -> None:
    table = weights.HashMap[None]()
    for key in IDS:
        table.put(key, None)
    assert list(table) == [IDS[at] for at in IN_JAVA]


@pytest.mark.parametrize("asked", TABLES)
def test_of_equals_the_first_is_chosen_that_a_jvm_found(asked: dict[str, Any]) -> None:
    units = asked["units"]
    records = [weights.Record(unit, host, weight) for unit in units for host, weight in units[unit].items()]
    assert weights.best_host(asked["hosts"], records, dict.fromkeys(units, 0)) == asked["found"][0]


# -- What comparing hosts that filters leave does not show: their reasons, and CPUs that are VMs' own.
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


@pytest.mark.parametrize("peer_of", ["h1", "h2", "h3"])
@pytest.mark.parametrize("stranger_of", ["h1", "h2", "h3"])
def test_a_host_of_which_both_are_true_is_refused_for_who_must_not_be_there(
    peer_of: str, stranger_of: str
) -> None:
    state = snapshot(
        *map(host, ("h1", "h2", "h3")),
        *(vm("v"), vm("peer", peer_of), vm("stranger", stranger_of)),
        group("together", TOGETHER, "v peer"),
        group("apart", APART, "v stranger"),
    )
    refusals = filters.vm_affinity(state, [state.vm_by_id["v"]], state.hosts)
    expected = {one: "positive" for one in ("h1", "h2", "h3") if one != peer_of} | {stranger_of: "negative"}
    assert {
        one: next(word for word in ("positive", "negative") if word in said) for one, said in refusals.items()
    } == expected
