"""Scheduling policies are built part by part and given to a cluster, as the engine's commands do it."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, types
from ovirtsdk4.services import SchedulingPoliciesService

from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request

NO_BALANCE = "38440000-8cf0-14bd-c43e-10b96e4ef00a"
MEMORY = "c9ddbb34-0e1d-4061-a8d7-b0893fa80932"
EVEN_MEMORY = "4134247a-9c58-4b9a-8593-530bb9e37c59"


@pytest.fixture
def policies(sdk: Connection) -> SchedulingPoliciesService:
    return sdk.system_service().scheduling_policies_service()


def unit(unit_id: str) -> types.SchedulingPolicyUnit:
    return types.SchedulingPolicyUnit(id=unit_id)


def test_built_and_assigned(sdk: Connection, policies: SchedulingPoliciesService) -> None:
    policy = policies.add(types.SchedulingPolicy(name="ours", description="built here"))
    service = policies.policy_service(policy.id)
    assert (policy.locked, service.balances_service().list()) == (False, [])
    service.filters_service().add(types.Filter(position=0, scheduling_policy_unit=unit(MEMORY)))
    service.weights_service().add(types.Weight(factor=3, scheduling_policy_unit=unit(EVEN_MEMORY)))
    service.balances_service().add(types.Balance(scheduling_policy_unit=unit(NO_BALANCE)))
    assert MEMORY in {each.id for each in service.filters_service().list()}
    (weight,) = service.weights_service().list()
    assert (weight.id, weight.factor, weight.scheduling_policy_unit.id) == (EVEN_MEMORY, 3, EVEN_MEMORY)
    (balance,) = service.get(follow="filters,balances").balances
    assert balance.id == NO_BALANCE

    cluster = sdk.system_service().clusters_service().cluster_service("cluster1")
    cluster.update(types.Cluster(scheduling_policy=types.SchedulingPolicy(id=policy.id)))
    assert cluster.get(follow="scheduling_policy").scheduling_policy.name == "ours"
    with pytest.raises(Error, match="Default") as caught:
        service.remove()
    assert caught.value.code == 400


def test_attaching_answers_200_and_adding_201(server: Server) -> None:
    added = request(
        f"{server.api_url}/schedulingpolicies",
        "POST",
        "<scheduling_policy><name>p</name></scheduling_policy>",
    )
    assert added.status == 201
    body = f'<filter><position>0</position><scheduling_policy_unit id="{MEMORY}"/></filter>'
    attached = request(f"{server.api_url}/schedulingpolicies/{added.xml.get('id')}/filters", "POST", body)
    assert (attached.status, attached.xml.tag) == (200, "filter")
