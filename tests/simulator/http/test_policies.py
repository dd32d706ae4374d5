"""Scheduling policies: the built-in ones, what may be changed, and the engine's bugs on the way."""

from collections.abc import Callable
from typing import Any

import pytest
from ovirtsdk4 import Error, types
from ovirtsdk4.services import SchedulingPoliciesService, SystemService

from ovirt_placement.model import SchedulingPolicy as Units
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import SchedulingPolicy
from ovirt_simulator.core.messages import NotFound
from tests.builders import CLUSTER, cluster, host
from tests.simulator.core import engines
from tests.simulator.http.plain import Api

NONE = "b4ed2332-a7ac-4d5f-9596-99a439cb2812"
NO_BALANCE = "38440000-8cf0-14bd-c43e-10b96e4ef00a"
MEMORY_FILTER = "c9ddbb34-0e1d-4061-a8d7-b0893fa80932"
CPU_WEIGHT = "7db4ab05-81ab-42e8-868a-aee2df483edb"
EXTERNAL = Units(filters=("F",), weights={"W": 3}, balance="B")


def small() -> Engine:
    return engines.engine(cluster(scheduling_policy=EXTERNAL), cluster("plain"), host("h1"))


def policy(engine: Engine, policy_id: str) -> SchedulingPolicy:
    return engine.queries.state.policies[policy_id]


#: Found as the last of those that a cluster has without a policy of its own.
OTHER_FILTER = engines.engine(host("h1")).queries.state.policies[NONE].filters[-1].unit


def refusal(command: Callable[..., object], *arguments: str, **options: Any) -> int:
    return engines.refused(command, *arguments, **options).http_status


def test_factors_of_the_engines_own_weights_come_from_the_state_file() -> None:
    engine = engines.engine(cluster(policy={"vm_affinity_weight": 50}), host("h1"))
    (found,) = engine.queries.state.clusters.values()
    factors = {w.unit: w.factor for w in policy(engine, found.policy_id).weights}
    assert factors["84e6ddee-ab0d-42dd-82f0-c297779db567"] == 50
    assert engine.snapshot().clusters[0].policy == {"vm_affinity_weight": 50}


def test_the_snapshot_reports_the_assigned_units() -> None:
    engine = small()

    def assigned() -> dict[str, Units | None]:
        return {one.id: one.scheduling_policy for one in engine.snapshot().clusters}

    assert assigned() == {CLUSTER: EXTERNAL, "plain": None}
    own, plain = (policy(engine, one.policy_id) for one in engine.queries.state.clusters.values())
    assert (own.locked, plain.id, len(own.filters) - len(plain.filters)) == (False, NONE, 1)
    engine.policies.update_cluster("plain", policy_name="CLUSTER1-placement")
    assert assigned() == {CLUSTER: EXTERNAL, "plain": EXTERNAL}
    engine.policies.update_cluster("plain", policy_id="no such id")
    assert assigned() == {CLUSTER: EXTERNAL, "plain": None}
    assert engines.codes(engine) == [811, 811]


def test_what_a_policy_may_not_be() -> None:
    engine = small()
    added = engine.policies.add("p")
    refused = [
        engines.refused(engine.policies.add, "p"),
        engines.refused(engine.policies.add, "q", properties={"HighUtilization": "75"}),
        engines.refused(engine.policies.edit, added.id, properties={"unknown": "1"}),
        engines.refused(engine.policies.attach, "filters", added.id, "no such unit"),
        engines.refused(engine.policies.edit, NONE, name="mine"),
        engines.refused(engine.policies.remove, NONE),
        engines.refused(engine.policies.remove, next(iter(engine.queries.state.clusters.values())).policy_id),
    ]
    assert {refusal.http_status for refusal in refused} == {400}
    assert "cluster1" in refused[6].detail


@pytest.mark.parametrize(
    ("kind", "unit", "options"),
    [
        ("filters", MEMORY_FILTER, {}),
        ("filters", CPU_WEIGHT, {}),
        ("filters", OTHER_FILTER, {"position": -1}),  # one alone is first
        ("weights", CPU_WEIGHT, {"factor": -1}),
        ("balances", MEMORY_FILTER, {}),
    ],
)
def test_a_refused_unit_stays_and_spoils_the_policy(kind: str, unit: str, options: dict[str, int]) -> None:
    engine = small()
    added = engine.policies.add("p")
    engine.policies.attach("filters", added.id, MEMORY_FILTER, position=-1)
    assert refusal(engine.policies.attach, kind, added.id, unit, **options) == 400
    assert refusal(engine.policies.edit, added.id, description="harmless") == 400


def test_cluster_properties_are_merged_dropped_and_checked() -> None:
    engine = small()
    given = {"HighUtilization": "60", "unknown": "x"}
    changed = engine.policies.update_cluster("plain", properties=given, ha_reservation=True)
    assert changed.scheduling_properties == {"HighUtilization": "60", "CpuOverCommitDurationMinutes": "2"}
    assert changed.ha_reservation
    changed = engine.policies.update_cluster("plain", properties={"CpuOverCommitDurationMinutes": "5"})
    assert changed.scheduling_properties == {"HighUtilization": "60", "CpuOverCommitDurationMinutes": "5"}
    for wrong in ({"HighUtilization": "5"}, {"VCpuToPhysicalCpuRatio": "3"}):
        assert refusal(engine.policies.update_cluster, "plain", properties=wrong) == 400
    changed = engine.policies.update_cluster("plain", properties={"VCpuToPhysicalCpuRatio": "1.5"})
    assert changed.scheduling_properties["VCpuToPhysicalCpuRatio"] == "1.5", "a property of a weight"
    with pytest.raises(NotFound):
        engine.policies.update_cluster("nowhere")


# -- By the API.
EVEN_MEMORY = "4134247a-9c58-4b9a-8593-530bb9e37c59"


@pytest.fixture
def policies(system: SystemService) -> SchedulingPoliciesService:
    return system.scheduling_policies_service()


def unit(unit_id: str) -> types.SchedulingPolicyUnit:
    return types.SchedulingPolicyUnit(id=unit_id)


def test_built_and_assigned(
    engine: Engine, system: SystemService, policies: SchedulingPoliciesService
) -> None:
    policy = policies.add(types.SchedulingPolicy(name="ours", description="built here"))
    service = policies.policy_service(policy.id)
    filters = service.filters_service()
    assert (policy.locked, filters.list(), service.balances_service().list()) == (False, [], [])
    filters.add(types.Filter(position=-1, scheduling_policy_unit=unit(MEMORY_FILTER)))
    service.weights_service().add(types.Weight(factor=3, scheduling_policy_unit=unit(EVEN_MEMORY)))
    service.balances_service().add(types.Balance(scheduling_policy_unit=unit(NO_BALANCE)))
    assert [(each.id, each.position) for each in filters.list()] == [(MEMORY_FILTER, -1)]
    (weight,) = service.weights_service().list()
    assert (weight.id, weight.factor, weight.scheduling_policy_unit.id) == (EVEN_MEMORY, 3, EVEN_MEMORY)
    (balance,) = service.get(follow="filters,balances").balances
    assert balance.id == NO_BALANCE

    cluster = system.clusters_service().cluster_service("cluster1")
    cluster.update(types.Cluster(scheduling_policy=types.SchedulingPolicy(id=policy.id)))
    assert cluster.get(follow="scheduling_policy").scheduling_policy.name == "ours"
    with pytest.raises(Error, match="Default") as caught:
        service.remove()
    assert caught.value.code == 400
    cluster.update(types.Cluster(scheduling_policy=types.SchedulingPolicy(name="none")))
    for _ in range(2):  # what is not there is removed all the same
        filters.filter_service(MEMORY_FILTER).remove()
    assert service.update(types.SchedulingPolicy(name="theirs")).description == "built here"
    assert filters.list() == []
    service.remove()
    assert engines.codes(engine) == [9910, *[9912] * 3, 811, 811, *[9912] * 3, 9914]


def test_attaching_answers_200_and_adding_201(api: Api) -> None:
    added = api("schedulingpolicies", "POST", "<scheduling_policy><name>p</name></scheduling_policy>")
    assert added.status == 201
    body = f'<filter><position>0</position><scheduling_policy_unit id="{MEMORY_FILTER}"/></filter>'
    attached = api(f"schedulingpolicies/{added.xml.get('id')}/filters", "POST", body)
    assert (attached.status, attached.xml.tag) == (200, "filter")
