"""Which affinity groups a running cluster breaks, and which VMs on which hosts break them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.affinity.host_groups import configured, legacy_groups, listed_hosts
from ovirt_placement.rules.affinity.membership import members
from ovirt_placement.rules.affinity.unified_groups import UnifiedGroup, unify
from ovirt_placement.rules.verdict import Struct


class Family(StrEnum):
    """Which half of an affinity group is broken."""

    HOST_AFFINITY = "host_affinity"
    VM_AFFINITY = "vm_affinity"


class Location(Struct, frozen=True):
    """A running VM and its host.

    Of a host that is not up nobody knows what still runs there: wait for it, or for its VMs to be
    restarted, and send no VM towards it.
    """

    vm: str
    host: str
    host_up: bool


class Violation(Struct, frozen=True):
    """A rule that the running VMs break.

    Hard positive VM groups that share members stand as one violation with all their ids, since only
    together can they be repaired; any other has one. A legacy label stands with its own id.
    """

    family: Family
    positive: bool
    hard: bool
    groups: tuple[str, ...]
    priority: float
    #: Of `groups`, those that are broken taken alone; none, if they are split through a VM that is down.
    broken: tuple[str, ...]
    #: Every running member, whether or not it should move.
    locations: tuple[Location, ...]
    #: Members that stand wrong: on a wrong host, beside a member to keep away from, or off the host
    #: that most members share.
    offenders: tuple[str, ...]


def find_violations(snapshot: Snapshot, cluster_id: str) -> tuple[Violation, ...]:
    """All broken rules of a cluster: hard before soft, host rules before VM rules, then by priority.

    Only members that run in the group's own cluster count (docs/rules.md, E5), and where they run,
    not where they are going. A positive host rule that lists no host is no rule (H1). All else is
    the engine's `broken` flag, with VM groups that are hard and positive unified.
    """
    groups = [group for group in snapshot.affinity_groups if group.cluster == cluster_id]
    legacy = [group for group in legacy_groups(snapshot) if group.cluster == cluster_id]
    found = (*_broken_host_rules(snapshot, [*groups, *legacy]), *_broken_vm_rules(snapshot, groups))
    return tuple(sorted(found, key=_importance))


def _importance(violation: Violation) -> tuple[object, ...]:
    """Hard rules have no priority among themselves: there only the size and the ids decide."""
    return (
        not violation.hard,
        violation.family is not Family.HOST_AFFINITY,
        0.0 if violation.hard else -violation.priority,
        -len(violation.locations),
        violation.groups,
    )


def _broken_host_rules(snapshot: Snapshot, groups: Iterable[AffinityGroup]) -> Iterator[Violation]:
    for group in groups:
        if not group.hosts_rule.enabled or not configured(snapshot, group):
            continue
        listed = listed_hosts(snapshot, group)
        locations = _locations(snapshot, members(snapshot).get(group.id, group.vms))
        wrong = tuple(at.vm for at in locations if (at.host in listed) is not group.hosts_rule.positive)
        if wrong and listed:
            yield Violation(
                family=Family.HOST_AFFINITY,
                positive=group.hosts_rule.positive,
                hard=group.hosts_rule.enforcing,
                groups=(group.id,),
                priority=group.priority,
                broken=(group.id,),
                locations=locations,
                offenders=wrong,
            )


def _broken_vm_rules(snapshot: Snapshot, groups: Iterable[AffinityGroup]) -> Iterator[Violation]:
    enabled = [group for group in groups if group.vms_rule.enabled]
    tied = [group for group in enabled if group.vms_rule.hard and group.vms_rule.positive]
    for unified in unify(snapshot, tied):
        yield from _split(snapshot, unified, hard=True)
    for group in enabled:
        alone = UnifiedGroup(members(snapshot)[group.id], (group.id,))
        if not group.vms_rule.positive:
            yield from _crowded(snapshot, group)
        elif not group.vms_rule.enforcing:
            yield from _split(snapshot, alone, hard=False)


def _split(snapshot: Snapshot, unified: UnifiedGroup, *, hard: bool) -> Iterator[Violation]:
    """Positive members on more than one host."""
    locations = _locations(snapshot, unified.vms)
    crowds = Counter(at.host for at in locations)
    if len(crowds) > 1:
        gathering = min(crowds, key=lambda host: (-crowds[host], host))
        yield Violation(
            family=Family.VM_AFFINITY,
            positive=True,
            hard=hard,
            groups=unified.groups,
            priority=max(snapshot.group_by_id[group].priority for group in unified.groups),
            broken=tuple(group for group in unified.groups if _is_split(snapshot, group)),
            locations=locations,
            offenders=tuple(at.vm for at in locations if at.host != gathering),
        )


def _crowded(snapshot: Snapshot, group: AffinityGroup) -> Iterator[Violation]:
    """Negative members that share a host."""
    locations = _locations(snapshot, members(snapshot)[group.id])
    crowds = Counter(at.host for at in locations)
    crowded = tuple(at.vm for at in locations if crowds[at.host] > 1)
    if crowded:
        yield Violation(
            family=Family.VM_AFFINITY,
            positive=False,
            hard=group.vms_rule.enforcing,
            groups=(group.id,),
            priority=group.priority,
            broken=(group.id,),
            locations=locations,
            offenders=crowded,
        )


def _is_split(snapshot: Snapshot, group: str) -> bool:
    return len({at.host for at in _locations(snapshot, members(snapshot)[group])}) > 1


def _locations(snapshot: Snapshot, vms: Iterable[str]) -> tuple[Location, ...]:
    known = (snapshot.vm_by_id[vm] for vm in vms)
    return tuple(Location(vm.id, vm.host, _up(snapshot, vm.host)) for vm in known if vm.host is not None)


def _up(snapshot: Snapshot, host: str) -> bool:
    known = snapshot.host_by_id.get(host)
    return known is not None and known.up
