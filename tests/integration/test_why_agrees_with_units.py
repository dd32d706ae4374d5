"""What `why` and `where` say for our part is what the policy units answer, in this process and by the proxy.

What the engine itself has to say of a host is another test's: `test_why_comes_true`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from ovirt_placement import inventory
from ovirt_placement.answers.placement import JudgedHost, why
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.scheduling import order
from ovirt_placement.units import client
from ovirt_placement.units.client import Undecided, accepted_hosts, ranked_hosts
from tests import builders as build
from tests.builders import CLUSTER, TOGETHER, group, snapshot, vm
from tests.examples import examples
from tests.integration.worlds import FILTERS, WEIGHTS, policies, worlds
from tests.placement.rules.strategies import HOSTS, VMS
from tests.plugins.proxy_process import running_proxy
from tests.plugins.published import WITHOUT_PAST, Publisher

#: Asks a unit about hosts: what it accepts, or how it ranks them.
AskFilter = Callable[[str, Sequence[str], str, dict[str, str]], set[str]]
AskWeight = Callable[[str, Sequence[str], str, dict[str, str]], dict[str, int]]


def counts(state: Snapshot, unit: str, enabled: bool) -> bool:
    """Whether `why` asks a unit: some only where the policy enables them."""
    return enabled or not unit.startswith(("PlacementKey", "HardAffinityWeight", "HaAdmission"))


def refused_by_us(answer: JudgedHost) -> bool:
    vetoes = (reason for reason in answer.reasons if reason.veto)
    return any(not unit.internal for reason in vetoes for unit in reason.by)


def check(state: Snapshot, asked_filter: AskFilter, asked_weight: AskWeight) -> None:
    cluster = state.cluster_by_id[CLUSTER]
    policy, given_parameters = cluster.scheduling_policy, dict(cluster.scheduling_properties)
    enabled = set(policy.filters) if policy else set()
    for one in (state.vm_by_id[name] for name in VMS[:3]):
        for hosts in (HOSTS, *((host,) for host in HOSTS)):
            verdicts = why(state, one, [state.host_by_id[host] for host in hosts]).hosts
            accepted = set(hosts)
            for unit in FILTERS:
                if counts(state, unit, unit in enabled):
                    accepted &= asked_filter(unit, hosts, one.id, given_parameters)
            assert {verdict.host.id for verdict in verdicts if not refused_by_us(verdict)} == accepted
        ordered = order(state, one)
        left = [host for host in HOSTS if host in {found.host for found in ordered.hosts}]
        weighing = {unit for unit, factor in (policy.weights if policy else {}).items() if factor}
        for unit in WEIGHTS:
            ranks = unit in weighing if policy else counts(state, unit, False)
            if ranks and left:
                reported = {found.host: found.weights[unit].rank for found in ordered.hosts}
                assert reported == asked_weight(unit, left, one.id, given_parameters)


@pytest.fixture(scope="module")
def publisher(tmp_path_factory: pytest.TempPathFactory) -> Publisher:
    return Publisher(tmp_path_factory.mktemp("published"), inventory=WITHOUT_PAST)


@pytest.fixture(scope="module")
def in_process(publisher: Publisher) -> Iterator[Publisher]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OVIRT_PLACEMENT_CONFIG", str(publisher.config))
        inventory.close()
        client._directory.cache_clear()
        logging.getLogger("ovirt_placement").setLevel(logging.ERROR)
        yield publisher
        logging.getLogger("ovirt_placement").setLevel(logging.NOTSET)


@pytest.mark.system
@settings(
    max_examples=examples(20),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(worlds(policies()))
def test_in_this_process(in_process: Publisher, state: Snapshot) -> None:
    in_process.publish(state)

    def asked_filter(unit: str, hosts: Sequence[str], vm: str, parameters: dict[str, str]) -> set[str]:
        try:
            return set(accepted_hosts(unit, hosts, vm, parameters))
        except Undecided:
            return set()

    def asked_weight(unit: str, hosts: Sequence[str], vm: str, parameters: dict[str, str]) -> dict[str, int]:
        return dict(ranked_hosts(unit, hosts, vm, parameters))

    check(state, asked_filter, asked_weight)


@pytest.fixture(scope="module")
def proxy(publisher: Publisher) -> Iterator[Any]:
    with running_proxy(publisher.environment) as client:
        yield client


@pytest.mark.system
@settings(
    max_examples=examples(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(worlds(policies()))
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
    (reported,) = why(state, state.vm_by_id["a"], [state.host_by_id["h2"]]).hosts
    assert reported.accepted
    assert [reason.kind for reason in reported.reasons] == ["group_moves_along"]
    among_both = why(state, state.vm_by_id["a"], state.hosts).hosts
    assert [answer.accepted for answer in among_both] == [True, False]
