"""The weight of VM-to-VM affinity: the refined order, against an oracle that compares hosts in pairs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import AffinityGroup, SchedulingPolicy, Snapshot
from ovirt_placement.rules.affinity.groups import GROUP_VIOLATED_BY_VM, GROUP_VIOLATED_HERE
from ovirt_placement.rules.affinity.weights import POSITIVE_PEERS_HERE, rank_by_vms
from ovirt_placement.rules.elements.verdict import Reason, Request
from tests.builders import APART, SOFT_APART, SOFT_TOGETHER, group, host, snapshot, vm
from tests.placement.rules.strategies import HOSTS, VMS, snapshots

THREE_HOSTS = (host("h1"), host("h2"), host("h3"))


def ranks(state: Snapshot, vms: str = "new") -> dict[str, int]:
    request = Request(tuple(vms.split()), ("h1", "h2", "h3"))
    return {weight.host: weight.rank for weight in rank_by_vms(state, request)}


def with_policy(state: Snapshot, *filters: str) -> Snapshot:
    """The same, where the cluster's policy is known to have these filters of ours and no other."""
    policy = SchedulingPolicy(filters=filters)
    return replace(state, clusters=tuple(replace(one, scheduling_policy=policy) for one in state.clusters))


def test_hard_stands_above_soft_only_where_no_filter_has_judged_the_hosts() -> None:
    state = snapshot(
        *THREE_HOSTS,
        vm("new"),
        vm("a", "h1"),
        vm("b", "h2"),
        group("hard", APART, "new a", priority=1),
        group("soft", SOFT_APART, "new b", priority=2),
    )
    assert ranks(state) == {"h3": 0, "h1": 1, "h2": 2}
    assert ranks(with_policy(state)) == {"h3": 0, "h2": 1, "h1": 2}
    assert ranks(with_policy(state, "AffinityFilter")) == {"h3": 0, "h1": 1, "h2": 2}


def test_failover_host_comes_last_even_with_peers() -> None:
    state = snapshot(
        host("h1", failover=True),
        host("h2"),
        host("h3"),
        vm("new"),
        vm("a", "h1"),
        group("g", SOFT_TOGETHER, "new a"),
    )
    assert ranks(state) == {"h2": 0, "h3": 0, "h1": 1}


def test_priorities_that_differ_in_the_eighth_decimal_are_equal() -> None:
    state = snapshot(
        *THREE_HOSTS,
        vm("new"),
        vm("a", "h1"),
        vm("b", "h2"),
        group("g1", SOFT_APART, "new a", priority=1.00000001),
        group("g2", SOFT_APART, "new b", priority=1.0),
    )
    assert ranks(state) == {"h3": 0, "h1": 1, "h2": 1}


def test_weight_names_the_groups_violated_and_the_peers_gained() -> None:
    state = snapshot(
        *THREE_HOSTS,
        vm("new"),
        vm("friend", "h1"),
        vm("foe", "h1"),
        group("near", SOFT_TOGETHER, "new friend"),
        group("far", SOFT_APART, "new foe", priority=2.0),
    )
    at_h1, at_h2, _ = rank_by_vms(state, Request(("new",), ("h1", "h2", "h3")))
    assert at_h1.reasons == (
        Reason(GROUP_VIOLATED_BY_VM, "far", "foe", number=2.0),
        Reason(POSITIVE_PEERS_HERE, number=1),
    )
    assert at_h2.reasons == (Reason(GROUP_VIOLATED_HERE, "near", None, number=1.0),)


def there(state: Snapshot, one: AffinityGroup, vms: set[str], place: str) -> set[str]:
    """Other members of a group that are, or will be, on a host."""
    labelled = {vm_id for lab in state.affinity_labels if lab.id in one.vm_labels for vm_id in lab.vms}
    found = set()
    for member in state.vms:
        targets = {entry.host for entry in state.pending if entry.vm == member.id}
        if member.id in (labelled | set(one.vms)) - vms and member.cluster == one.cluster:
            found |= {member.id} if place in (targets or {member.host}) else set()
    return found


def engine_compares(state: Snapshot, vms: set[str], one: str, other: str) -> int:
    """Below zero if the engine holds the first host for strictly better, above if the second."""
    groups = [
        found
        for found in state.affinity_groups
        if found.vms_rule.enabled
        and vms & {member for place in (*HOSTS, None) for member in there(state, found, set(), place)}
    ]

    def violated(place: str) -> Counter[float]:
        return Counter(
            found.priority
            for found in groups
            if bool(there(state, found, vms, place)) != found.vms_rule.positive
        )

    for priority in sorted({found.priority for found in groups}, reverse=True):
        if violated(one)[priority] != violated(other)[priority]:
            return violated(one)[priority] - violated(other)[priority]

    def gains(place: str) -> tuple[int, int]:
        positive = [there(state, found, vms, place) for found in groups if found.vms_rule.positive]
        peers = set().union(*positive)
        fixed = {vm.id for vm in state.vms if not vm.migratable or vm.hosted_engine}
        return len(peers & fixed), len(peers)

    return (gains(one) < gains(other)) - (gains(one) > gains(other))


def negative_peers(state: Snapshot, vms: set[str], place: str) -> int:
    found = [
        there(state, one, vms, place)
        for one in state.affinity_groups
        if one.vms_rule.enabled and not one.vms_rule.positive and there_anywhere(state, one) & vms
    ]
    return len(set().union(*found))


def there_anywhere(state: Snapshot, one: AffinityGroup) -> set[str]:
    return {member for place in (*HOSTS, None) for member in there(state, one, set(), place)}


@given(snapshots(most_groups=4), st.sets(st.sampled_from(VMS), min_size=1, max_size=2))
def test_order_is_the_engines_and_ties_fall_to_fewer_negative_peers(state: Snapshot, vms: set[str]) -> None:
    found = {weight.host: weight.rank for weight in rank_by_vms(state, Request(tuple(vms), HOSTS))}
    for one in HOSTS:
        for other in HOSTS:
            engine = engine_compares(state, vms, one, other)
            crowd = negative_peers(state, vms, one) - negative_peers(state, vms, other)
            assert (found[one] < found[other]) == ((engine or crowd) < 0)


@given(snapshots(), st.sampled_from(VMS), st.booleans())
def test_ranks_are_dense_and_every_host_has_one(state: Snapshot, vm_id: str, above: bool) -> None:
    asked = (*HOSTS, "unknown")
    weights = rank_by_vms(with_policy(state) if above else state, Request((vm_id,), asked))
    assert tuple(weight.host for weight in weights) == asked
    found = {weight.rank for weight in weights}
    assert found == set(range(len(found)))
