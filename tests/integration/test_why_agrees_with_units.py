"""What `why` and `where` say for our part is what the policy units answer through the proxy.

What the engine itself has to say of a host is another test's: `test_why_comes_true`.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from ovirt_placement.answers.placement import JudgedHost, why
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.catalogue import order
from tests import builders as build
from tests.builders import CLUSTER, TOGETHER, group, snapshot, vm
from tests.examples import examples
from tests.integration.worlds import FILTERS, WEIGHTS, policies, worlds
from tests.placement.rules.strategies import HOSTS, VMS
from tests.plugins.published import Publisher


def counts(state: Snapshot, unit: str, enabled: bool) -> bool:
    """Whether `why` asks a unit: some only where the policy enables them."""
    return enabled or not unit.startswith(("PlacementKey", "HardAffinityWeight", "HaAdmission"))


def refused_by_us(answer: JudgedHost) -> bool:
    vetoes = (reason for reason in answer.reasons if reason.veto)
    return any(not unit.internal for reason in vetoes for unit in reason.by)


def accepted(proxy: Any, unit: str, hosts: Sequence[str], vm: str, parameters: dict[str, str]) -> set[str]:
    return set(proxy.runFilters([unit], list(hosts), vm, parameters)["result"])


def check(state: Snapshot, proxy: Any) -> None:
    cluster = state.cluster_by_id[CLUSTER]
    policy, given_parameters = cluster.scheduling_policy, dict(cluster.scheduling_properties)
    enabled = set(policy.filters) if policy else set()
    for one in (state.vm_by_id[name] for name in VMS[:3]):
        for hosts in (HOSTS, *((host,) for host in HOSTS)):
            verdicts = why(state, one, [state.host_by_id[host] for host in hosts]).hosts
            left = set(hosts)
            for unit in FILTERS:
                if counts(state, unit, unit in enabled):
                    left &= accepted(proxy, unit, hosts, one.id, given_parameters)
            assert {verdict.host.id for verdict in verdicts if not refused_by_us(verdict)} == left
        ordered = order(state, one)
        ranked = [host for host in HOSTS if host in {found.host for found in ordered.hosts}]
        weighing = {unit for unit, factor in (policy.weights if policy else {}).items() if factor}
        for unit in WEIGHTS:
            ranks = unit in weighing if policy else counts(state, unit, False)
            if ranks and ranked:
                reported = {found.host: found.weights[unit].rank for found in ordered.hosts}
                answer = proxy.runCostFunctions([[unit, 1]], ranked, one.id, given_parameters)["result"]
                assert reported == {host: weight for host, weight, _ in answer}


@pytest.mark.system
@settings(
    max_examples=examples(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(worlds(policies()))
def test_through_the_proxy(publisher: Publisher, proxy: Any, state: Snapshot) -> None:
    publisher.publish(state)
    check(state, proxy)


def test_a_migration_that_drains_a_host_is_accepted_by_both(publisher: Publisher, proxy: Any) -> None:
    state = snapshot(
        build.host("h1"), build.host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", TOGETHER, "a b")
    )
    publisher.publish(state)
    assert accepted(proxy, "AffinityFilter", ["h2"], "a", {}) == {"h2"}
    (reported,) = why(state, state.vm_by_id["a"], [state.host_by_id["h2"]]).hosts
    assert reported.accepted
    assert [reason.kind for reason in reported.reasons] == ["group_moves_along"]
    among_both = why(state, state.vm_by_id["a"], state.hosts).hosts
    assert [answer.accepted for answer in among_both] == [True, False]
