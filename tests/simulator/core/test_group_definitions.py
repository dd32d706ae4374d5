"""Closures and conflicts of affinity groups, against the engine's definitions."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_simulator.core import affinity
from ovirt_simulator.core.affinity import Conflict, find_conflicts, flat
from ovirt_simulator.core.events import EventCode
from tests.builders import TOGETHER, group, host, vm
from tests.examples import examples
from tests.simulator.core import engines
from tests.simulator.scheduler.clusters import states


@given(states())
@pytest.mark.system
def test_a_closure_is_of_the_groups_of_the_vms_cluster(snapshot: Snapshot) -> None:
    state = engines.backend(snapshot).state
    for one in snapshot.vms:
        tied = {one.id}
        for _ in snapshot.vms:
            for each in snapshot.affinity_groups:
                hard = each.vms_rule.enabled and each.vms_rule.enforcing and each.vms_rule.positive
                if hard and each.cluster == one.cluster and tied & set(each.vms):
                    tied |= set(each.vms)
        here = {v.id for v in snapshot.vms if one.host is not None and v.host == one.host}
        assert set(affinity.closure(state, one.id)) == {one.id} | tied & here


def test_without_the_filter_of_affinity_nobody_is_taken_along() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", TOGETHER, "a b"))
    loose = engine.policies.add("loose")
    engine.policies.update_cluster("cluster1", policy_id=loose.id)
    engine.vms.migrate("a", closure=True)
    engine.advance(60)
    assert (engines.where(engine, "a"), engines.where(engine, "b")) == (("up", "h2"), ("up", "h1"))


def drawn(groups: list[AffinityGroup], first: str, second: str) -> set[str]:
    """Hosts that draw the first VM, and also the second by groups that the first is not in."""
    of_first = {host for g in groups if first in g.vms for host in g.hosts}
    of_second = {host for g in groups if second in g.vms and first not in g.vms for host in g.hosts}
    return of_first & of_second


@settings(max_examples=examples(60), deadline=None)
@given(states())
def test_vms_apart_that_are_drawn_to_one_host_are_found_either_way_round(snapshot: Snapshot) -> None:
    groups = list(snapshot.affinity_groups)
    positive = [each for each in groups if each.hosts_rule.enabled and each.hosts_rule.positive]
    names, vms, hosts = set(), set(), set()
    for apart in groups:
        if not apart.vms_rule.enabled or apart.vms_rule.positive:
            continue
        for first, second in permutations(apart.vms, 2):
            common = drawn(positive, first, second)
            if common:
                names |= {apart.name, *(each.name for each in positive)}
                vms |= {first, second}
                hosts |= common
    state = engines.backend(snapshot).state
    code = EventCode.VM_TO_HOST_CONFLICTS_NEGATIVE_VM_TO_VM_AFFINITY
    found = [
        one for one in find_conflicts([flat(state, g) for g in state.groups.values()]) if one.code is code
    ]
    expected = Conflict(code, frozenset(names), frozenset(vms), frozenset(hosts))
    assert found == ([expected] if names else [])
