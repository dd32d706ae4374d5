"""The hard VM-to-host filter: its choices one by one, then all together against a brute-force oracle."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.filters import (
    GROUP_WITHOUT_HOSTS,
    HOST_FORBIDDEN,
    HOST_NOT_LISTED,
    filter_by_hosts,
)
from ovirt_placement.rules.affinity.groups import GROUP_VIOLATED_HERE
from ovirt_placement.rules.affinity.weights import rank_by_hosts
from ovirt_placement.rules.elements.verdict import Reason, Request, Verdict
from tests.builders import (
    APART,
    SOFT_TOGETHER,
    TOGETHER,
    cluster,
    group,
    host,
    label,
    snapshot,
    vm,
)
from tests.placement.rules.strategies import HOSTS, VMS, snapshots

THREE_HOSTS = (host("h1"), host("h2"), host("h3"))
OLD = cluster(compatibility="4.3")


def judge(state: Snapshot, vms: str) -> dict[str, Verdict]:
    request = Request(tuple(vms.split()), ("h1", "h2", "h3"))
    return {verdict.host: verdict for verdict in filter_by_hosts(state, request)}


def accepted(state: Snapshot, vms: str) -> str:
    return " ".join(host for host, verdict in judge(state, vms).items() if verdict.accepted)


def test_positive_group_admits_its_hosts_only_wherever_the_vm_runs() -> None:
    state = snapshot(*THREE_HOSTS, vm("a", "h3"), group("g", vms="a", hosts_rule=TOGETHER, hosts="h1 h2"))
    verdicts = judge(state, "a")
    assert accepted(state, "a") == "h1 h2"
    assert verdicts["h3"].reasons == (Reason(HOST_NOT_LISTED, "g", "a"),)


def test_negative_group_keeps_off_its_hosts() -> None:
    state = snapshot(*THREE_HOSTS, vm("a"), group("g", vms="a", hosts_rule=APART, hosts="h1"))
    assert accepted(state, "a") == "h2 h3"
    assert judge(state, "a")["h1"].reasons == (Reason(HOST_FORBIDDEN, "g", "a"),)


def test_group_without_hosts_counts_as_not_configured_and_every_verdict_says_so() -> None:
    state = snapshot(*THREE_HOSTS, vm("a"), group("g", vms="a", hosts_rule=TOGETHER))
    assert accepted(state, "a") == "h1 h2 h3"
    for verdict in judge(state, "a").values():
        assert verdict.reasons == (Reason(GROUP_WITHOUT_HOSTS, "g", "a"),)


def test_legacy_label_restricts_its_vms_to_its_hosts_below_4_4() -> None:
    parts = (*THREE_HOSTS, vm("a"), label("l", "a", "h2", implicit=True))
    assert accepted(snapshot(OLD, *parts), "a") == "h2"
    assert judge(snapshot(OLD, *parts), "a")["h1"].reasons == (Reason(HOST_NOT_LISTED, "l", "a"),)
    assert accepted(snapshot(cluster(compatibility="4.4"), *parts), "a") == "h1 h2 h3"


def admitted_by_definition(state: Snapshot, vm_id: str, candidate: str) -> bool:
    """The rule in the words of its definition, without any index; the cluster of the VMs is the first."""
    rules = []
    labels = {one.id: one for one in state.affinity_labels}
    for one in state.affinity_groups:
        members = set(one.vms).union(*(labels[name].vms for name in one.vm_labels))
        listed = set(one.hosts).union(*(labels[name].hosts for name in one.host_labels))
        if vm_id in members and one.hosts_rule.enabled and one.hosts_rule.enforcing and listed:
            rules.append((one.hosts_rule.positive, listed))
    if state.clusters[0].compatibility == "4.3":
        rules += [(True, set(one.hosts)) for one in labels.values() if one.implicit and vm_id in one.vms]
    return all((candidate in listed) == positive for positive, listed in rules)


@given(snapshots(), st.sampled_from(VMS))
def test_filter_is_its_definition(state: Snapshot, vm_id: str) -> None:
    for verdict in filter_by_hosts(state, Request((vm_id,), HOSTS)):
        assert verdict.accepted == admitted_by_definition(state, vm_id, verdict.host)


@given(snapshots(), st.sets(st.sampled_from(VMS), min_size=2, max_size=3))
def test_several_vms_get_the_hosts_that_each_gets(state: Snapshot, vms: set[str]) -> None:
    together = filter_by_hosts(state, Request(tuple(vms), HOSTS))
    alone = [filter_by_hosts(state, Request((vm_id,), HOSTS)) for vm_id in vms]
    for verdict, *single in zip(together, *alone, strict=True):
        assert verdict.accepted == all(one.accepted for one in single)


def ranks(state: Snapshot, vms: str = "a") -> dict[str, int]:
    weights = rank_by_hosts(state, Request(tuple(vms.split()), ("h1", "h2", "h3")))
    return {weight.host: weight.rank for weight in weights}


def test_hosts_listed_come_first_and_the_weight_says_what_is_violated() -> None:
    state = snapshot(
        *THREE_HOSTS, vm("a"), group("g", vms="a", hosts_rule=SOFT_TOGETHER, hosts="h2", priority=3.0)
    )
    assert ranks(state) == {"h2": 0, "h1": 1, "h3": 1}
    assert rank_by_hosts(state, Request(("a",), ("h1",)))[0].reasons == (
        Reason(GROUP_VIOLATED_HERE, "g", number=3.0),
    )


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
    found = {weight.host: weight.rank for weight in rank_by_hosts(state, Request((vm_id,), HOSTS))}
    for one in HOSTS:
        for other in HOSTS:
            assert (found[one] < found[other]) == (compare_by_definition(state, vm_id, one, other) < 0)
