"""The engine's own weights against their definitions, on random small clusters."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.built_in.affinity import score_by_host_groups, score_by_vm_groups
from ovirt_placement.rules.built_in.weights import score_by_ha_vms, score_by_preference
from ovirt_placement.rules.elements.verdict import Request
from tests.placement.rules import strategies

SNAPSHOTS = strategies.snapshots()
SOME_VMS = st.lists(st.sampled_from(strategies.VMS), min_size=1, max_size=3, unique=True).map(tuple)
SOME_HOSTS = st.lists(st.sampled_from(strategies.HOSTS), min_size=1, unique=True).map(tuple)


def worse(one: list[float], other: list[float]) -> bool:
    """Whether the groups violated on one host weigh more, by the first priority that differs."""
    for mine, its in zip_longest(one, other, fillvalue=-inf):
        if mine != its:
            return mine > its
    return False


def members(snapshot: Snapshot, group: AffinityGroup) -> set[str]:
    labels = {label.id: label for label in snapshot.affinity_labels}
    return {*group.vms}.union(*(labels[label].vms for label in group.vm_labels))


def listed(snapshot: Snapshot, group: AffinityGroup) -> set[str]:
    labels = {label.id: label for label in snapshot.affinity_labels}
    return {*group.hosts}.union(*(labels[label].hosts for label in group.host_labels))


def seen(snapshot: Snapshot) -> dict[str, set[str]]:
    """Where VMs of the one cluster, and pending ones of all, are to the engine."""
    running = {vm.id: {vm.host} for vm in snapshot.vms if vm.host and vm.cluster == "cluster1"}
    pending = {
        entry.vm: {one.host for one in snapshot.pending if one.vm == entry.vm} for entry in snapshot.pending
    }
    return {**running, **pending}


@given(SNAPSHOTS, SOME_VMS, SOME_HOSTS)
def test_vm_affinity(snapshot: Snapshot, vms: tuple[str, ...], hosts: tuple[str, ...]) -> None:
    """A host weighs 1, and 1 for every host that is better: by what it violates, then by whom it joins."""
    places, asked, pending = seen(snapshot), {*vms}, {entry.vm for entry in snapshot.pending}
    groups = [
        (one, members(snapshot, one) - asked)
        for one in snapshot.affinity_groups
        if one.vms_rule.enabled and members(snapshot, one) & asked
    ]

    def there(host: str) -> set[str]:
        return {vm for vm, at in places.items() if host in at}

    def better(one: str, other: str) -> bool:
        violated = [
            sorted(
                (
                    group.priority
                    for group, peers in groups
                    if bool(peers & there(host)) != group.vms_rule.positive
                ),
                reverse=True,
            )
            for host in (one, other)
        ]
        if violated[0] != violated[1]:
            return worse(violated[1], violated[0])
        joined = [
            {vm for group, peers in groups if group.vms_rule.positive for vm in peers & there(host)}
            for host in (one, other)
        ]
        fixed = [
            sum(1 for vm in its if vm not in pending and not snapshot.vm_by_id[vm].movable) for its in joined
        ]
        return fixed[0] > fixed[1] or (fixed[0] == fixed[1] and len(joined[0]) > len(joined[1]))

    assert score_by_vm_groups(snapshot, Request(vms, hosts)) == {
        host: 1 + sum(better(other, host) for other in hosts) for host in hosts
    }


@given(SNAPSHOTS, SOME_VMS, SOME_HOSTS)
def test_vm_to_hosts(snapshot: Snapshot, vms: tuple[str, ...], hosts: tuple[str, ...]) -> None:
    """Of each VM, 1 and the hosts that break less; of all VMs the sum."""

    def violated(vm: str, host: str) -> list[float]:
        soft = (one for one in snapshot.affinity_groups if one.hosts_rule.enabled)
        return sorted(
            (
                one.priority
                for one in soft
                if not one.hosts_rule.enforcing
                and vm in members(snapshot, one)
                and (host in listed(snapshot, one)) != one.hosts_rule.positive
            ),
            reverse=True,
        )

    assert score_by_host_groups(snapshot, Request(vms, hosts)) == {
        host: sum(1 + sum(worse(violated(vm, host), violated(vm, other)) for other in hosts) for vm in vms)
        for host in hosts
    }


@given(SNAPSHOTS, SOME_VMS, SOME_HOSTS, st.integers(1, 100))
def test_ha_reservation(
    snapshot: Snapshot, vms: tuple[str, ...], hosts: tuple[str, ...], scale_down: int
) -> None:
    """The fullest candidate counts 100, halves rounded up; all is divided and rounded up, VM by VM."""
    reserved = snapshot.cluster_by_id["cluster1"].ha_reservation
    ha = [vm for vm in snapshot.vms if vm.ha and vm.cluster == "cluster1"]
    counts = Counter(vm.host for vm in ha)
    fullest = max(counts[host] for host in hosts)

    def weight(host: str) -> int:
        # Of at most seven VMs no share is so near to a half that single precision would report.
        share = (2 * 100 * counts[host] + fullest) // (2 * fullest) if fullest else 0
        return -(-share // scale_down)

    asking = sum(reserved and any(vm.id == name for vm in ha) for name in vms)
    request = Request(vms, hosts, parameters={"ScaleDown": str(scale_down)})
    assert score_by_ha_vms(snapshot, request) == {host: asking * weight(host) for host in hosts}


@given(SNAPSHOTS, SOME_HOSTS, st.data())
def test_preferred_hosts(snapshot: Snapshot, hosts: tuple[str, ...], data: st.DataObject) -> None:
    """Of VMs that are down, 10,000 for every one that prefers other hosts; nothing of the others."""
    pinned = {
        vm: data.draw(st.lists(st.sampled_from(strategies.HOSTS), unique=True)) for vm in strategies.VMS[:3]
    }
    vms = tuple(
        strategies.build.vm(vm, "h1" if number else None, pinned_hosts=tuple(pinned[vm]))
        for number, vm in enumerate(pinned)
    )
    state = strategies.build.snapshot(
        strategies.build.cluster(), *(strategies.build.host(host) for host in strategies.HOSTS), *vms
    )
    down = strategies.VMS[0]
    expected = {host: 0 if host in pinned[down] or not pinned[down] else 10_000 for host in hosts}
    assert score_by_preference(state, Request(tuple(pinned), hosts)) == expected
    assert score_by_preference(state, Request(strategies.VMS[1:3], hosts)) == {}
