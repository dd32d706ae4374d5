"""Draws small clusters for properties: few hosts and VMs, so that groups collide often."""

from collections.abc import Collection

from hypothesis import strategies as st

from ovirt_placement.model import (
    AffinityGroup,
    AffinityLabel,
    AffinityRule,
    Cluster,
    Host,
    Pending,
    Snapshot,
    Vm,
)
from tests import builders as build

HOSTS = ("h1", "h2", "h3", "h4")
VMS = ("a", "b", "c", "d", "e", "f")
#: One VM of another cluster, which labels bring into groups.
FOREIGN = "x"

RULES = st.sampled_from([build.TOGETHER, build.APART, build.SOFT_TOGETHER, build.SOFT_APART, build.DISABLED])
PRIORITIES = st.sampled_from([0.5, 1.0, 1.0, 2.0])


def some_of(ids: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.sets(st.sampled_from(ids), max_size=len(ids)).map(lambda chosen: " ".join(sorted(chosen)))


@st.composite
def vms(draw: st.DrawFn, vm_id: str, hosts: tuple[str, ...] = HOSTS) -> Vm:
    at = draw(st.sampled_from((None, *hosts)))
    return build.vm(
        vm_id,
        at,
        status="migrating" if at and draw(st.integers(0, 4)) == 0 else "up" if at else "down",
        ha=draw(st.booleans()),
        migratable=draw(st.sampled_from([True, True, True, False])),
        hosted_engine=draw(st.integers(0, 9)) == 0,
    )


@st.composite
def groups(draw: st.DrawFn, group_id: str, rules: st.SearchStrategy[AffinityRule] = RULES) -> AffinityGroup:
    return build.group(
        group_id,
        draw(rules),
        draw(some_of(VMS)),
        hosts_rule=draw(rules),
        hosts=draw(some_of(HOSTS)),
        priority=draw(PRIORITIES),
        vm_labels=draw(st.sampled_from([(), (), ("lab1",), ("lab2",)])),
        host_labels=draw(st.sampled_from([(), (), ("lab1",)])),
    )


@st.composite
def labels(draw: st.DrawFn, label_id: str) -> AffinityLabel:
    return build.label(
        label_id, draw(some_of((*VMS, FOREIGN))), draw(some_of(HOSTS)), implicit=draw(st.booleans())
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    return build.cluster(
        compatibility=draw(st.sampled_from(["4.7", "4.7", "4.3"])), ha_reservation=draw(st.booleans())
    )


@st.composite
def snapshots(
    draw: st.DrawFn, rules: st.SearchStrategy[AffinityRule] = RULES, most_groups: int = 3
) -> Snapshot:
    """One cluster with everything that affinity rules look at, and a VM of another cluster."""
    hosts: list[Host] = [
        build.host(host, status=draw(st.sampled_from(["up", "up", "up", "maintenance"]))) for host in HOSTS
    ]
    pending: list[Pending] = [
        build.pending(vm, draw(st.sampled_from(HOSTS)))
        for vm in sorted(draw(st.sets(st.sampled_from(VMS), max_size=2)))
    ]
    count = draw(st.integers(0, most_groups))
    return build.snapshot(
        draw(clusters()), build.cluster("cluster2"), *hosts, build.host("far", cluster="cluster2"),
        *(draw(vms(vm)) for vm in VMS), build.vm(FOREIGN, "far", cluster="cluster2"), draw(labels("lab1")),
        draw(labels("lab2")), *(draw(groups(f"g{number}", rules)) for number in range(count)), *pending,
    )  # fmt: skip


def members_of(state: Snapshot, group: AffinityGroup) -> set[str]:
    """The VMs of a group that are in its cluster, named by itself or by its labels."""
    labelled = {vm for one in state.affinity_labels if one.id in group.vm_labels for vm in one.vms}
    named = labelled | {*group.vms}
    return {one.id for one in state.vms if one.id in named and one.cluster == group.cluster}


def hosts_of(state: Snapshot, group: AffinityGroup) -> set[str]:
    """The hosts that a group lists, by itself or by its labels."""
    labelled = {host for one in state.affinity_labels if one.id in group.host_labels for host in one.hosts}
    return labelled | {*group.hosts}


def is_violated(group: AffinityGroup, used: Collection[str], listed: Collection[str]) -> bool:
    """As the engine flags it: by the hosts of those members that run, and the hosts that the group lists."""
    by_vm, by_host = group.vms_rule, group.hosts_rule
    if by_vm.enabled and (len(set(used)) > 1 if by_vm.positive else len(set(used)) < len(used)):
        return True
    return by_host.enabled and bool(listed) and any((one in listed) is not by_host.positive for one in used)
