"""Affinity filters and weights, and preferred hosts, against the definitions of the engine's units."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings

from ovirt_placement.model import AffinityGroup, Host, Snapshot, Vm
from ovirt_simulator.scheduler import filters, weights
from tests import builders
from tests.builders import APART, TOGETHER
from tests.examples import examples
from tests.simulator.scheduler.clusters import questions
from tests.simulator.scheduler.test_capacity import Question


def where(state: Snapshot, vm_id: str, cluster: str) -> set[str]:
    """What getAllRunningByCluster, overlaid with pending VMs of anywhere, reports a VM."""
    coming = {entry.host for entry in state.pending if entry.vm == vm_id}
    vm = state.vm_by_id[vm_id]
    return coming or ({vm.host} if vm.host is not None and vm.cluster == cluster else set())


def peers(state: Snapshot, group: AffinityGroup, vms: Sequence[Vm]) -> dict[str, set[str]]:
    scheduled = {vm.id for vm in vms}
    return {vm_id: where(state, vm_id, vms[0].cluster) for vm_id in group.vms if vm_id not in scheduled}


def groups(state: Snapshot, vms: Sequence[Vm]) -> list[AffinityGroup]:
    return [group for group in state.affinity_groups if {vm.id for vm in vms} & set(group.vms)]


@settings(max_examples=examples(40))
@given(questions())
def test_a_peer_that_runs_in_another_cluster_is_invisible_to_the_filter(question: Question) -> None:
    state, vms, hosts = question
    hard = [group for group in groups(state, vms) if group.vms_rule.enabled and group.vms_rule.enforcing]
    taken = {
        positive: {
            place
            for group in hard
            if group.vms_rule.positive == positive
            for places in peers(state, group, vms).values()
            for place in places
        }
        for positive in (True, False)
    }
    accepted = {host.id for host in hosts if not taken[True] or host.id in taken[True]} - taken[False]
    scheduled = {vm.id for vm in vms}
    hostile = set(taken[False])
    if any(not group.vms_rule.positive and len(scheduled & set(group.vms)) > 1 for group in hard):
        accepted, hostile = set(), {host.id for host in hosts}
    refusals = filters.vm_affinity(state, vms, hosts)
    assert {host.id for host in hosts} - refusals.keys() == accepted
    assert {host for host in refusals if "negative" in refusals[host]} == refusals.keys() & hostile


@pytest.mark.parametrize("peer_of", ["h1", "h2", "h3"])
@pytest.mark.parametrize("stranger_of", ["h1", "h2", "h3"])
def test_a_host_of_which_both_are_true_is_refused_for_who_must_not_be_there(
    peer_of: str, stranger_of: str
) -> None:
    state = builders.snapshot(
        *map(builders.host, ("h1", "h2", "h3")),
        *(builders.vm("v"), builders.vm("peer", peer_of), builders.vm("stranger", stranger_of)),
        builders.group("together", TOGETHER, "v peer"),
        builders.group("apart", APART, "v stranger"),
    )
    refusals = filters.vm_affinity(state, [state.vm_by_id["v"]], state.hosts)
    expected = {one: "positive" for one in ("h1", "h2", "h3") if one != peer_of} | {stranger_of: "negative"}
    assert {
        one: next(word for word in ("positive", "negative") if word in said) for one, said in refusals.items()
    } == expected


def priority(group: AffinityGroup) -> int:
    """The state's priorities are around 1: a hundred-millionth more or less is none to the engine."""
    return round(group.priority * 10**7)


@pytest.mark.system
def test_the_weight_of_vm_affinity() -> None:
    """It ranks by violated groups, then by peers that cannot leave, then by peers: those of the filter."""

    @given(questions())
    def check(question: Question) -> None:
        state, vms, hosts = question
        keys = {host.id: key(state, vms, host) for host in hosts}
        assert weights.vm_affinity(state, vms, hosts) == ranks(keys)

    def key(state: Snapshot, vms: Sequence[Vm], host: Host) -> Any:
        broken, friends = [], set()
        for group in groups(state, vms):
            there = {vm_id for vm_id, places in peers(state, group, vms).items() if host.id in places}
            if group.vms_rule.enabled and bool(there) != group.vms_rule.positive:
                broken.append(priority(group))
            if group.vms_rule.enabled and group.vms_rule.positive:
                friends |= there
        pending = {entry.vm for entry in state.pending}
        tied = [vm_id for vm_id in friends if vm_id not in pending and not state.vm_by_id[vm_id].migratable]
        return sorted(broken, reverse=True), -len(tied), -len(friends)

    check()


def ranks(keys: Mapping[str, Any]) -> dict[str, int]:
    return {host: 1 + sum(other < key for other in keys.values()) for host, key in keys.items()}


def added(hosts: Sequence[Host], of_vms: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {host.id: sum(each[host.id] for each in of_vms) for host in hosts} if of_vms else {}


def compare(found: Callable[..., dict[str, int]], expected: Callable[..., dict[str, int]]) -> None:
    @given(questions())
    def check(question: Question) -> None:
        assert found(*question) == expected(*question)

    check()


@pytest.mark.system
def test_ranks_of_several_vms_by_their_hosts_add_up() -> None:
    def of_vm(state: Snapshot, vm: Vm, hosts: Sequence[Host]) -> dict[str, int]:
        soft = [g for g in groups(state, [vm]) if g.hosts_rule.enabled and not g.hosts_rule.enforcing]
        return ranks(
            {
                host.id: sorted(
                    (priority(g) for g in soft if (host.id in g.hosts) != g.hosts_rule.positive), reverse=True
                )
                for host in hosts
            }
        )

    compare(
        weights.vm_to_host, lambda state, vms, hosts: added(hosts, [of_vm(state, vm, hosts) for vm in vms])
    )


@pytest.mark.system
def test_preferred_hosts_are_those_of_vms_that_are_down() -> None:
    def of_vm(vm: Vm, hosts: Sequence[Host]) -> dict[str, int]:
        return {h.id: 10000 if vm.pinned_hosts and h.id not in vm.pinned_hosts else 0 for h in hosts}

    compare(
        weights.preferred_hosts,
        lambda _, vms, hosts: added(hosts, [of_vm(vm, hosts) for vm in vms if vm.status == "down"]),
    )


@pytest.mark.system
def test_ha_vms_are_counted_by_the_cluster() -> None:
    def of_vm(state: Snapshot, vm: Vm, hosts: Sequence[Host]) -> dict[str, int]:
        cluster = state.cluster_by_id[hosts[0].cluster]
        counts = {
            host.id: sum(v.ha and v.host == host.id and v.cluster == cluster.id for v in state.vms)
            for host in hosts
        }
        if not vm.ha or not cluster.ha_reservation or not any(counts.values()):
            return dict.fromkeys(counts, 0)
        most = max(counts.values())
        return {host_id: (200 * count + most) // (2 * most) for host_id, count in counts.items()}

    compare(
        weights.ha_reservation,
        lambda state, vms, hosts: added(hosts, [of_vm(state, vm, hosts) for vm in vms]),
    )
