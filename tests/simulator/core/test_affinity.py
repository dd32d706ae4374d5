"""Affinity groups and labels: what is checked, what is not, and when a group is violated."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings

from ovirt_placement.model import AffinityGroup, AffinityRule, Snapshot
from ovirt_simulator.core import affinity
from ovirt_simulator.core.affinity import Conflict, find_conflicts, flat
from ovirt_simulator.core.commands.groups import Members
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.events import EventCode
from ovirt_simulator.core.rejections import NotFound
from tests.builders import (
    APART,
    CLUSTER,
    DISABLED,
    SOFT_APART,
    TOGETHER,
    cluster,
    group,
    host,
    label,
    vm,
)
from tests.examples import examples
from tests.simulator.core import engines
from tests.simulator.scheduler.clusters import states


def small(*more: Any) -> Engine:
    return engines.engine(
        cluster(),
        cluster("other"),
        host("h1"),
        host("h2"),
        host("far", cluster="other"),
        vm("a", "h1"),
        vm("b", "h1"),
        vm("c"),
        vm("foreign", cluster="other"),
        *more,
    )


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        ({"vms": ["foreign"]}, "not in the same cluster"),
        ({"hosts": ["far"]}, "not in the same cluster"),
        ({"vm_labels": ["l9"]}, "label is invalid (does not exist)"),
    ],
)
def test_whole_groups_are_checked(edit: dict[str, Any], text: str) -> None:
    """What a real engine refuses too: `tests/simulator/http/test_real_engine.py`."""
    engine = small()
    refusal = engines.refused(engine.affinity_groups.add, CLUSTER, **{"name": "g", **edit})
    assert refusal.http_status == 400
    assert text in refusal.detail
    assert engine.queries.state.groups_of(CLUSTER) == ()
    assert engines.codes(engine) == [10351]


def test_a_savable_conflict_is_a_warning() -> None:
    engine = small(group("bound", hosts_rule=TOGETHER, vms="a", hosts="h1"))
    engine.affinity_groups.add(CLUSTER, name="g", vms=["a"], hosts=["h1"], hosts_rule=SOFT_APART)
    assert engines.codes(engine) == [10357, 10350]


def test_the_cluster_of_a_group_stays() -> None:
    engine = small(group("g", TOGETHER, "a"))
    refusal = engines.refused(engine.affinity_groups.edit, "g", cluster="other")
    assert refusal.http_status == 400
    assert "Cannot change Cluster for Affinity Group" in refusal.detail


def test_single_members_are_added_unchecked() -> None:
    engine = small(group("g", APART, "a"), group("p", TOGETHER, "a b"), label("l"))
    engine.affinity_groups.add_member("g", Members.VMS, "foreign")
    engine.affinity_groups.add_member("g", Members.VMS, "b")
    engine.affinity_groups.add_member("g", Members.HOSTS, "far")
    engine.affinity_groups.add_member("g", Members.VM_LABELS, "l")
    changed = engine.queries.state.groups.get("g")
    assert (changed.vms, changed.hosts, changed.vm_labels) == (("a", "foreign", "b"), ("far",), ("l",))
    assert engines.codes(engine) == [10352] * 4


OFF = DISABLED


@pytest.mark.parametrize(
    ("vms_rule", "hosts_rule", "hosts", "broken"),
    [
        (SOFT_APART, OFF, "", True),
        (TOGETHER, OFF, "", False),
        (OFF, TOGETHER, "h1", False),
        (OFF, TOGETHER, "h2", True),
        (OFF, TOGETHER, "", True),
        (OFF, APART, "h1", True),
        (OFF, APART, "h2", False),
        (OFF, OFF, "h2", False),
    ],
)
def test_broken_counts_running_members(
    vms_rule: AffinityRule, hosts_rule: AffinityRule, hosts: str, broken: bool
) -> None:
    engine = small(
        group("g", vms_rule, "a c", hosts_rule=hosts_rule, hosts=hosts, vm_labels=("l",)), label("l", "b")
    )
    (found,) = engine.queries.state.groups_of(CLUSTER)
    assert engine.queries.is_broken(found) is broken


def test_a_migrating_vm_counts_on_its_source_until_the_hand_over() -> None:
    engine = small(group("g", SOFT_APART, "a b"))
    (found,) = engine.queries.state.groups_of(CLUSTER)
    engine.vms.migrate("a")
    assert engine.queries.is_broken(found)
    engine.advance(3.2)
    assert not engine.queries.is_broken(found)


def test_a_label_that_goes_leaves_its_groups() -> None:
    engine = small(group("g", TOGETHER, "a", vm_labels=("l",)), label("l"))
    added = engine.labels.add("fast", vms=["a"])
    with pytest.raises(NotFound):
        engine.labels.add_member(added.id, "hosts", "h9")
    engine.labels.remove("l")
    assert engine.queries.state.groups["g"].vm_labels == ()
    assert engines.codes(engine) == [10380, 10384]


# -- Closures and conflicts, against the engine's definitions.


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
