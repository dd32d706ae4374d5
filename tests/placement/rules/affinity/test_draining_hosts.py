"""Hosts that a maintenance run empties take nobody; a host that the engine empties is not held for ever."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.answers.placement import why
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.assignment.catalogue import StrategyName, strategy
from ovirt_placement.planning.planner import make_plan
from tests.builders import APART, CLUSTER, group, host, snapshot, vm
from tests.plugins.proxy_process import running_proxy
from tests.plugins.published import Publisher

HOSTS = (host("h1"), host("h2"), host("h3"))


def marked(state: Snapshot, *hosts: str) -> Snapshot:
    return replace(state, draining_hosts=hosts)


def test_why_says_so() -> None:
    state = marked(snapshot(*HOSTS, vm("new")), "h2")
    found = {one.host.id: one for one in why(state, state.vm_by_id["new"], state.hosts).hosts}
    assert [host for host, one in found.items() if one.accepted] == ["h1", "h3"]
    assert [reason.sentence for reason in found["h2"].reasons] == [
        "the host is being emptied for maintenance"
    ]


@pytest.mark.parametrize("name", StrategyName)
def test_no_plan_goes_there(name: StrategyName) -> None:
    crowded = snapshot(*HOSTS, vm("a", "h1"), vm("b", "h1"), group("g", APART, "a b"))
    plan = make_plan(marked(crowded, "h2"), CLUSTER, strategy=strategy(name))
    assert [step.target for step in plan.steps] == ["h3"]


@pytest.mark.system
def test_the_unit_refuses_it_and_gives_way_where_a_drain_would_never_end(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path)
    state = snapshot(
        host("h1", status="preparing_for_maintenance"),
        host("h2"),
        host("h3"),
        host("h4"),
        vm("a", "h1"),
        vm("b", "h2"),
        vm("c", "h3"),
        vm("d", "h4"),
        vm("new"),
        group("apart", APART, "a b c d"),
    )
    with running_proxy(publisher.environment) as proxy:

        def left(vm_id: str, *hosts: str) -> list[str]:
            answer = proxy.runFilters(["AffinityFilter", "HostAffinityFilter"], list(hosts), vm_id, {})
            assert answer["result_code"] == 0
            found: list[str] = answer["result"]
            return found

        publisher.publish(marked(state, "h4"))
        assert left("a", "h2", "h3") == ["h2", "h3"]
        assert left("new", "h3", "h4") == ["h3"]
        up = replace(state.hosts[0], status="up")
        publisher.publish(marked(replace(state, hosts=(up, *state.hosts[1:])), "h4"))
        assert left("a", "h2", "h3") == []
