"""Which groups tie a VM to hosts: members run only on the hosts that they list, or on none of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from ovirt_placement.lookups.index import once_for_members
from ovirt_placement.model import AffinityGroup, AffinityLabel, AffinityRule, Cluster, Snapshot
from ovirt_placement.rules.affinity.groups import hosts, members
from ovirt_placement.rules.elements.constraints import Allowed, Constraint
from ovirt_placement.rules.elements.placement import Placement
from ovirt_placement.rules.elements.verdict import Reason

#: The first compatibility version whose clusters ignore the implicit flag of labels.
_LABELS_ACT_NO_MORE = (4, 4)


@once_for_members
def hard_host_groups_of(snapshot: Snapshot) -> dict[str, tuple[AffinityGroup, ...]]:
    """Groups that restrict a VM to hosts, or keep it off them, by VM id; legacy labels come last.

    A hard positive group that lists no host is among them: see `configured`.
    """
    own = members(snapshot)
    by_vm: defaultdict[str, list[AffinityGroup]] = defaultdict(list)
    for group in snapshot.affinity_groups:
        if group.hosts_rule.hard:
            for vm in own[group.id]:
                by_vm[vm].append(group)
    for group in legacy_groups(snapshot):
        for vm in group.vms:
            by_vm[vm].append(group)
    return {vm: tuple(groups) for vm, groups in by_vm.items()}


@once_for_members
def legacy_groups(snapshot: Snapshot) -> tuple[AffinityGroup, ...]:
    """Labels that act as hard positive host groups, one per label and cluster below 4.4.

    Such a group has its label's id and name.
    """
    old = [cluster for cluster in snapshot.clusters if labels_act(cluster)]
    implicit = [label for label in snapshot.affinity_labels if label.implicit]
    groups = (_group_of(label, cluster, snapshot) for cluster in old for label in implicit)
    return tuple(group for group in groups if group.vms)


def labels_act(cluster: Cluster) -> bool:
    """Whether implicit labels act as affinity groups in this cluster."""
    return tuple(int(part) for part in cluster.compatibility.split(".")[:2]) < _LABELS_ACT_NO_MORE


def listed_hosts(snapshot: Snapshot, group: AffinityGroup) -> frozenset[str]:
    """Ids of the hosts that a group names, directly or through a label; of a legacy label, its hosts."""
    known = hosts(snapshot).get(group.id)
    return frozenset(group.hosts) if known is None else known


def configured(snapshot: Snapshot, group: AffinityGroup) -> bool:
    """Whether a host rule names hosts at all.

    The engine lets a hard positive group without hosts shut out every host, and everywhere else
    ignores it; here it counts as not configured (docs/rules.md, H1). A legacy label without hosts does
    shut its VMs out.
    """
    return bool(listed_hosts(snapshot, group)) or group.id in snapshot.label_by_id


#: Hosts that a group lists, whether a VM must be on one of them or on none, and what is said of another host.
Restriction = tuple[frozenset[str], bool, Reason]


def refusals(hosts: Iterable[str], restrictions: Iterable[Restriction]) -> Mapping[str, tuple[Reason, ...]]:
    """The reasons against each of these hosts that any restriction refuses, in the order of restrictions.

    Set by set: of thousands of hosts, asked for thousands of VMs, most are judged alike.
    """
    every = frozenset(hosts)
    found: dict[str, tuple[Reason, ...]] = {}
    for listed, positive, reason in restrictions:
        alone = (reason,)
        for host in every - listed if positive else every & listed:
            found[host] = (*found[host], reason) if host in found else alone
    return found


def _group_of(label: AffinityLabel, cluster: Cluster, snapshot: Snapshot) -> AffinityGroup:
    vms = snapshot.vm_by_id
    return AffinityGroup(
        id=label.id,
        name=label.name,
        cluster=cluster.id,
        priority=1.0,
        vms_rule=AffinityRule(enabled=False, positive=False, enforcing=False),
        hosts_rule=AffinityRule(enabled=True, positive=True, enforcing=True),
        vms=tuple(vm for vm in label.vms if vm in vms and vms[vm].cluster == cluster.id),
        hosts=label.hosts,
        vm_labels=(),
        host_labels=(),
    )


class OnHosts(Constraint, frozen=True, kw_only=True):
    """VMs of a positive group."""

    family: ClassVar[str] = "host_affinity"
    asks: ClassVar[str] = "on its hosts"
    positive: ClassVar[bool] = True

    hosts: frozenset[str]

    @property
    def form(self) -> Allowed:
        return Allowed(self.hosts, self.positive)

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        allowed = self.form
        return tuple(vm for vm, host in self.running(placement) if not allowed.right(host))

    def admits(self, vm: str, host: str, placement: Placement) -> bool:
        return self.form.right(host)


class OffHosts(OnHosts, frozen=True, kw_only=True):
    """VMs of a negative group."""

    asks: ClassVar[str] = "off its hosts"
    positive: ClassVar[bool] = False


def on_and_off_hosts(snapshot: Snapshot, cluster_id: str, *, hard: bool) -> Iterator[OnHosts]:
    """The hard or the soft host rules of a cluster, legacy labels last.

    One that lists no host keeps nothing: a group is not configured, and a legacy label shuts its VMs out,
    which no migration repairs.
    """
    for group in (*snapshot.affinity_groups, *legacy_groups(snapshot)):
        listed, rule = listed_hosts(snapshot, group), group.hosts_rule
        if group.cluster == cluster_id and rule.enabled and rule.enforcing is hard and listed:
            yield (OnHosts if rule.positive else OffHosts)(
                groups=(group.id,),
                vms=members(snapshot).get(group.id, group.vms),
                hard=hard,
                priority=group.priority,
                hosts=listed,
            )
