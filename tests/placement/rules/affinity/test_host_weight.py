"""The weight of VM-to-host affinity, against an oracle that compares hosts in pairs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.groups import GROUP_VIOLATED_HERE
from ovirt_placement.rules.affinity.host_weight import rank_hosts
from ovirt_placement.rules.verdict import Reason, Request
from tests.builders import SOFT_APART, SOFT_TOGETHER, TOGETHER, group, host, snapshot, vm
from tests.placement.rules.strategies import HOSTS, VMS, snapshots

THREE_HOSTS = (host("h1"), host("h2"), host("h3"))


def ranks(state: Snapshot, vms: str = "a") -> dict[str, int]:
    weights = rank_hosts(state, Request(tuple(vms.split()), ("h1", "h2", "h3")))
    return {weight.host: weight.rank for weight in weights}


def test_hosts_listed_come_first_and_the_weight_says_what_is_violated() -> None:
    state = snapshot(
        *THREE_HOSTS, vm("a"), group("g", vms="a", hosts_rule=SOFT_TOGETHER, hosts="h2", priority=3.0)
    )
    assert ranks(state) == {"h2": 0, "h1": 1, "h3": 1}
    assert rank_hosts(state, Request(("a",), ("h1",)))[0].reasons == (
        Reason(GROUP_VIOLATED_HERE, "g", number=3.0),
    )


def test_higher_priority_outweighs_any_number_of_lower_ones() -> None:
    state = snapshot(
        *THREE_HOSTS,
        vm("a"),
        group("g1", vms="a", hosts_rule=SOFT_APART, hosts="h1", priority=1),
        group("g2", vms="a", hosts_rule=SOFT_APART, hosts="h1", priority=1),
        group("g3", vms="a", hosts_rule=SOFT_APART, hosts="h2", priority=1.5),
    )
    assert ranks(state) == {"h3": 0, "h1": 1, "h2": 2}


def test_hard_rules_and_rules_without_hosts_decide_nothing() -> None:
    state = snapshot(
        *THREE_HOSTS,
        vm("a"),
        group("hard", vms="a", hosts_rule=TOGETHER, hosts="h1"),
        group("empty", vms="a", hosts_rule=SOFT_TOGETHER),
    )
    assert ranks(state) == {"h1": 0, "h2": 0, "h3": 0}


def test_several_vms_add_up() -> None:
    state = snapshot(
        *THREE_HOSTS,
        vm("a"),
        vm("b"),
        group("g1", vms="a", hosts_rule=SOFT_TOGETHER, hosts="h1"),
        group("g2", vms="b", hosts_rule=SOFT_TOGETHER, hosts="h1 h2"),
    )
    assert ranks(state, "a b") == {"h1": 0, "h2": 1, "h3": 2}


def compare_by_definition(state: Snapshot, vm_id: str, one: str, other: str) -> int:
    labels = {found.id: found for found in state.affinity_labels}

    def violated(place: str) -> Counter[float]:
        priorities = []
        for found in state.affinity_groups:
            members = set(found.vms).union(*(labels[name].vms for name in found.vm_labels))
            listed = set(found.hosts).union(*(labels[name].hosts for name in found.host_labels))
            soft = found.hosts_rule.enabled and not found.hosts_rule.enforcing
            if soft and vm_id in members and (place in listed) != found.hosts_rule.positive:
                priorities.append(found.priority)
        return Counter(priorities)

    for priority in sorted({found.priority for found in state.affinity_groups}, reverse=True):
        if violated(one)[priority] != violated(other)[priority]:
            return violated(one)[priority] - violated(other)[priority]
    return 0


@given(snapshots(most_groups=4), st.sampled_from(VMS))
def test_order_is_its_definition(state: Snapshot, vm_id: str) -> None:
    found = {weight.host: weight.rank for weight in rank_hosts(state, Request((vm_id,), HOSTS))}
    for one in HOSTS:
        for other in HOSTS:
            assert (found[one] < found[other]) == (compare_by_definition(state, vm_id, one, other) < 0)
