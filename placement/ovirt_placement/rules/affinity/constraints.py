"""Affinity groups and legacy labels as invariants, and what hard ones ask of VMs, as blocks.

Members run together, or apart; on the hosts that a group lists, or on none of them. For blocks, some
groups and all their VMs are looked at to see whether rules can be satisfied, all groups and the VMs of
failed hosts to see whether these can restart.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import ClassVar

from ovirt_placement.lookups import once_for_members
from ovirt_placement.model import AffinityGroup, AffinityLabel, AffinityRule, Cluster, Snapshot
from ovirt_placement.model.snapshot import grouped
from ovirt_placement.rules.affinity.groups import (
    UnifiedGroup,
    as_the_engine_unifies,
    listed_hosts,
    members,
    unify,
)
from ovirt_placement.rules.elements.assignment import Block, Resources
from ovirt_placement.rules.elements.placement import Placement, off_gathering
from ovirt_placement.rules.elements.rule import Allowed, AllowedHosts, Ask, AtMost, Constraint, Same
from ovirt_placement.rules.elements.verdict import Reason, Verdict


class Together(Constraint, frozen=True, kw_only=True):
    """VMs of one positive group, or of several that shared members tie together."""

    family: ClassVar[str] = "vm_affinity"
    asks: ClassVar[str] = "together"
    positive: ClassVar[bool] = True

    #: The members of each group, by its id.
    members_of: Mapping[str, tuple[str, ...]] = {}

    form: Same = Same()

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """Members off the host that most share."""
        return off_gathering(dict(self.running(placement)))

    def admits(self, vm: str, host: str, placement: Placement) -> bool:
        """Where no other member runs, or to a host that another member is on or on its way to (F2, F3)."""
        peers = {there for peer in self.vms if peer != vm for there in placement.destinations(peer)}
        return not peers or host in peers

    def violated_groups(self, placement: Placement) -> tuple[str, ...]:
        """None, if they are split only through a VM that is down."""
        return tuple(group for group in self.groups if self._is_split(group, placement))

    def as_engine_lists(self) -> tuple[str, ...]:
        return as_the_engine_unifies(self.members_of.values()) if self.members_of else self.vms

    def _is_split(self, group: str, placement: Placement) -> bool:
        hosts = {placement.runs_on(vm) for vm in self.members_of.get(group, self.vms)}
        return len(hosts - {None}) > 1


class Apart(Constraint, frozen=True, kw_only=True):
    """VMs of one negative group."""

    family: ClassVar[str] = "vm_affinity"
    asks: ClassVar[str] = "apart"
    positive: ClassVar[bool] = False

    form: AtMost = AtMost(most=1)

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """Members that share their host with another."""
        crowds = Counter(host for _, host in self.running(placement))
        return tuple(vm for vm, host in self.running(placement) if crowds[host] > 1)

    def surplus(self, placement: Placement) -> int:
        hosts = [host for _, host in self.running(placement)]
        return len(hosts) - len(set(hosts))

    def admits(self, vm: str, host: str, placement: Placement) -> bool:
        """To hosts without another member; one that migrates counts at both ends (F4)."""
        return not any(host in placement.occupied(peer) for peer in self.vms if peer != vm)


def between_vms(snapshot: Snapshot, cluster_id: str, *, hard: bool) -> Iterator[Together | Apart]:
    """What the hard or the soft VM groups of a cluster ask for.

    Hard positive ones that share members are one.
    """
    groups = {
        group.id: group
        for group in snapshot.affinity_groups
        if group.cluster == cluster_id and group.vms_rule.enabled and group.vms_rule.enforcing is hard
    }
    for unified in unify(snapshot, groups.values()) if hard else ():
        if unified.groups:
            yield Together(
                groups=unified.groups,
                vms=unified.vms,
                hard=True,
                priority=max(groups[group].priority for group in unified.groups),
                members_of={group: members(snapshot)[group] for group in unified.groups},
            )
    for kind in (Apart,) if hard else (Together, Apart):
        for group in groups.values():
            if group.vms_rule.positive is kind.positive:
                yield kind(
                    groups=(group.id,), vms=members(snapshot)[group.id], hard=hard, priority=group.priority
                )


#: The first compatibility version whose clusters ignore the implicit flag of labels.
_LABELS_ACT_NO_MORE = (4, 4)


@once_for_members
def hard_host_groups_of(snapshot: Snapshot) -> dict[str, tuple[AffinityGroup, ...]]:
    """Groups that restrict a VM to hosts, or keep it off them, by VM id; legacy labels come last.

    A hard positive group that lists no host is among them: see `configured`.
    """
    found = _with_legacy_groups(snapshot)
    return grouped((vm, group) for group, vms in found if group.hosts_rule.hard for vm in vms)


@once_for_members
def legacy_groups(snapshot: Snapshot) -> tuple[AffinityGroup, ...]:
    """Labels that act as hard positive host groups, one per label and cluster below 4.4.

    Such a group has its label's id and name.
    """
    old = [
        one
        for one in snapshot.clusters
        if tuple(map(int, one.compatibility.split(".")[:2])) < _LABELS_ACT_NO_MORE
    ]
    implicit = [label for label in snapshot.affinity_labels if label.implicit]
    groups = (_group_of(label, cluster, snapshot) for cluster in old for label in implicit)
    return tuple(group for group in groups if group.vms)


def _with_legacy_groups(snapshot: Snapshot) -> Iterator[tuple[AffinityGroup, tuple[str, ...]]]:
    """All groups with their members, legacy labels last."""
    yield from ((group, members(snapshot)[group.id]) for group in snapshot.affinity_groups)
    yield from ((group, group.vms) for group in legacy_groups(snapshot))


def configured(snapshot: Snapshot, group: AffinityGroup) -> bool:
    """Whether a host rule names hosts at all.

    The engine lets a hard positive group without hosts shut out every host, and everywhere else
    ignores it; here it counts as not configured (docs/rules.md, H1). A legacy label without hosts does
    shut its VMs out.
    """
    return bool(listed_hosts(snapshot)[group.id]) or group.id in snapshot.label_by_id


def asks(snapshot: Snapshot, group: AffinityGroup, half: str, strength: str) -> bool:
    """Whether a half of a group, `vms` or `hosts`, has a `hard` or `soft` rule that can be violated."""
    if half == "vms":
        rule, concerned = group.vms_rule, len(members(snapshot)[group.id]) > 1
    else:
        rule, concerned = group.hosts_rule, bool(listed_hosts(snapshot)[group.id])
    return concerned and (rule.hard if strength == "hard" else rule.soft)


def asked_by_groups(half: str, strength: str) -> Callable[[Snapshot, Cluster], str]:
    """What of a cluster asks for a rule that affinity groups ask for, with its verb; empty for none."""

    def asked_by(snapshot: Snapshot, cluster: Cluster) -> str:
        own = (one for one in snapshot.affinity_groups if one.cluster == cluster.id)
        groups = sorted(
            one.name for one in own if members(snapshot)[one.id] and asks(snapshot, one, half, strength)
        )
        return f"{strength} rules of the groups {', '.join(groups)} mean" if groups else ""

    return asked_by


#: Hosts that a group lists, whether a VM must be on one of them or on none, and what is said of another host.
Restriction = tuple[frozenset[str], bool, Reason]


def judge_restrictions(
    hosts: Sequence[str], restrictions: Iterable[Restriction], notes: tuple[Reason, ...] = ()
) -> tuple[Verdict, ...]:
    """Refuse the hosts that any restriction refuses, with the reasons in their order; notes go with all.

    Set by set: of thousands of hosts, asked for thousands of VMs, most are judged alike.
    """
    every = frozenset(hosts)
    found: dict[str, tuple[Reason, ...]] = {}
    for listed, positive, reason in restrictions:
        alone = (reason,)
        for host in every - listed if positive else every & listed:
            found[host] = (*found[host], reason) if host in found else alone
    return tuple(Verdict(host, host not in found, found.get(host, ()) + notes) for host in hosts)


def _group_of(label: AffinityLabel, cluster: Cluster, snapshot: Snapshot) -> AffinityGroup:
    vms = snapshot.vm_by_id
    return AffinityGroup(
        id=label.id,
        name=label.name,
        cluster=cluster.id,
        priority=1.0,
        vms_rule=AffinityRule(enabled=False, positive=False, enforcing=False),
        hosts_rule=AffinityRule(enabled=True, positive=True, enforcing=True),
        vms=tuple(vm for vm in dict.fromkeys(label.vms) if vm in vms and vms[vm].cluster == cluster.id),
        hosts=label.hosts,
        vm_labels=(),
        host_labels=(),
    )


class OnHosts(AllowedHosts, frozen=True, kw_only=True):
    """VMs of a positive group."""

    family: ClassVar[str] = "host_affinity"
    asks: ClassVar[str] = "on its hosts"


class OffHosts(OnHosts, frozen=True, kw_only=True):
    """VMs of a negative group."""

    asks: ClassVar[str] = "off its hosts"
    positive: ClassVar[bool] = False


def on_and_off_hosts(snapshot: Snapshot, cluster_id: str, *, hard: bool) -> Iterator[OnHosts]:
    """The hard or the soft host rules of a cluster, legacy labels last.

    One that lists no host keeps nothing: a group is not configured, and a legacy label shuts its VMs out,
    which no migration repairs.
    """
    for group, vms in _with_legacy_groups(snapshot):
        listed, rule = listed_hosts(snapshot)[group.id], group.hosts_rule
        if group.cluster == cluster_id and rule.enabled and rule.enforcing is hard and listed:
            kind, form = OnHosts if rule.positive else OffHosts, Allowed(listed, rule.positive)
            yield kind(groups=(group.id,), vms=vms, hard=hard, priority=group.priority, form=form)


@once_for_members
def asks_of_groups(snapshot: Snapshot) -> Mapping[str, Sequence[Ask]]:
    """By cluster, what hard rules of groups ask of their VMs; legacy labels come last."""
    found = (
        (group.cluster, Ask(group.id, vms, tuple(_forms(snapshot, group))))
        for group, vms in _with_legacy_groups(snapshot)
        if vms
    )
    return grouped((cluster, one) for cluster, one in found if one.forms)


@once_for_members
def asks_by_vm(snapshot: Snapshot) -> Mapping[str, Sequence[Ask]]:
    """All of that, by VM."""
    return by_vm(chain.from_iterable(asks_of_groups(snapshot).values()))


def by_vm(asks: Iterable[Ask]) -> dict[str, tuple[Ask, ...]]:
    """Those of some asks that are about a VM, by its id, in the order of first mention."""
    return grouped((vm, one) for one in asks for vm in one.vms)


def gather(vms: Iterable[str], unified_of: Mapping[str, UnifiedGroup]) -> Iterable[tuple[str, ...]]:
    """The VMs, those of one unified positive group together, in the order of first mention."""
    return grouped((unified_of[vm].vms[0] if vm in unified_of else vm, vm) for vm in vms).values()


def block_of(
    snapshot: Snapshot, vms: tuple[str, ...], asked: Mapping[str, Sequence[Ask]], need: Resources
) -> Block:
    """VMs that go to one host together, with what is asked (by VM) and pinning leave them.

    Those that must share a host and must not are allowed nowhere.
    """
    apart: list[str] = []
    only: set[frozenset[str]] = set()
    never: set[frozenset[str]] = set()
    for vm in vms:
        pinned = snapshot.vm_by_id[vm].bound_to
        if pinned is not None:
            only.add(pinned)
        for ask in asked.get(vm, ()):
            for form in ask.forms:
                if isinstance(form, AtMost):
                    apart.append(ask.id)
                elif isinstance(form, Allowed):
                    (only if form.positive else never).add(form.hosts)
    tags = frozenset(apart)
    if len(apart) > len(tags):
        only.add(frozenset())
    allowed = frozenset.intersection(*only) if only else None
    return Block(vms, need, allowed, frozenset().union(*never), tags)


def _forms(snapshot: Snapshot, group: AffinityGroup) -> Iterator[Same | AtMost | Allowed]:
    if group.vms_rule.hard:
        yield Same() if group.vms_rule.positive else AtMost(1)
    if group.hosts_rule.hard and configured(snapshot, group):
        yield Allowed(listed_hosts(snapshot)[group.id], group.hosts_rule.positive)
