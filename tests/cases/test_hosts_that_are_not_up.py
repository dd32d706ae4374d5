"""Hosts in every state but up: who can leave them, and what is said where none is up at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model.infrastructure import HOST_STATUSES
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.strategies import StrategyName, strategy
from tests.builders import APART, CLUSTER, group, host, snapshot, vm
from tests.cases.asking import Ask


def test_vms_leave_a_non_operational_host_by_plan_as_the_engine_lets_them(ask: Ask) -> None:
    assert "1. b from h4 to h2" in ask("ovirt-enforcer plan", "non-operational-host").text
    maintenance = ask("ovirt-enforcer maintenance plan h4", "non-operational-host")
    assert maintenance.status == 0
    assert "h4 (2 migrations" in maintenance.text
    emptied = ask("ovirt-placement what-if --maintenance h4", "non-operational-host")
    assert emptied.text.startswith("Maintenance of h4 in cluster c: empty after 2 migrations (the fewest)")


@pytest.mark.parametrize("state", ["no-host-up", "one-draining-host"])
@pytest.mark.parametrize("strategy", ["greedy", "optimal", "random"])
def test_where_no_host_is_up_a_plan_says_so(ask: Ask, state: str, strategy: str) -> None:
    answer = ask(f"ovirt-enforcer plan --strategy {strategy}", state)
    assert answer.status == 4
    assert "no host is up" in answer.text
    assert "no VM is migrated" in ask("ovirt-enforcer simulate-policy", state).text


def test_the_hosted_engine_leaves_by_the_engine_itself(ask: Ask) -> None:
    found = ask("ovirt-placement what-if --maintenance h1 --fail-if staying", "hosted-engine")
    assert found.status == 0
    assert "HostedEngine is moved by the engine itself, probably to h3" in found.text
    assert "cannot leave" not in found.text
    planned = ask("ovirt-enforcer maintenance plan h1", "hosted-engine").text
    assert "HostedEngine is moved by the engine itself" in planned


@given(
    statuses=st.lists(st.sampled_from(sorted(HOST_STATUSES)), min_size=1, max_size=4),
    homes=st.lists(st.integers(0, 3), min_size=2, max_size=5),
    name=st.sampled_from(StrategyName),
)
def test_hosts_of_any_status_get_a_plan_or_a_reason(
    statuses: list[str], homes: list[int], name: StrategyName
) -> None:
    hosts = [host(f"h{at}", status=status) for at, status in enumerate(statuses)]
    vms = [vm(f"v{at}", f"h{home % len(hosts)}") for at, home in enumerate(homes)]
    state = snapshot(*hosts, *vms, group("apart", APART, " ".join(one.id for one in vms)))
    plan = make_plan(state, CLUSTER, strategy=strategy(name, seed=1))
    up = {one.id for one in hosts if one.up}
    assert all(step.target in up for step in plan.steps)
    assert plan.steps or all(one.obstacles for one in plan.remaining)
