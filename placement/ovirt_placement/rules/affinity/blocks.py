"""What hard groups, legacy labels and pinning ask of VMs, as blocks: who goes together, apart, and where.

Who asks chooses the bindings and the VMs: some bindings and all their VMs to see whether rules can be
satisfied, all bindings and the VMs of failed hosts to see whether these can restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ovirt_placement.lookups.index import once_for_members
from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules.affinity.groups import UnifiedGroup, members
from ovirt_placement.rules.affinity.host_groups import configured, legacy_groups, listed_hosts
from ovirt_placement.rules.elements.assignment import Block, Resources


class Binding(Record, frozen=True):
    """What the hard rules of a group ask of its VMs, or a legacy label that acts as a group."""

    group: AffinityGroup
    vms: tuple[str, ...]
    together: bool
    apart: bool
    #: The hosts that the VMs are restricted to, if they are; and those that they are kept off.
    only: frozenset[str] | None
    never: frozenset[str]


@once_for_members
def bindings(snapshot: Snapshot) -> tuple[Binding, ...]:
    """Of each group that has VMs and a hard rule; legacy labels come last."""
    groups = (*snapshot.affinity_groups, *legacy_groups(snapshot))
    found = (_binding(snapshot, group) for group in groups)
    return tuple(
        one for one in found if one.vms and (one.together or one.apart or one.only is not None or one.never)
    )


@once_for_members
def bindings_of(snapshot: Snapshot) -> Mapping[str, Sequence[Binding]]:
    """All that bind a VM, by its id."""
    return by_vm(bindings(snapshot))


def by_vm(some: Iterable[Binding]) -> dict[str, list[Binding]]:
    """Those of some bindings that bind a VM, by its id, in the order of first mention."""
    found: dict[str, list[Binding]] = {}
    for one in some:
        for vm in one.vms:
            found.setdefault(vm, []).append(one)
    return found


def gather(vms: Iterable[str], unified_of: Mapping[str, UnifiedGroup]) -> Iterator[tuple[str, ...]]:
    """The VMs, those of one unified positive group together, in the order of first mention."""
    gathered: dict[str, list[str]] = {}
    for vm in vms:
        unified = unified_of.get(vm)
        gathered.setdefault(unified.vms[0] if unified else vm, []).append(vm)
    return map(tuple, gathered.values())


def block_of(
    snapshot: Snapshot, vms: tuple[str, ...], binding: Mapping[str, Sequence[Binding]], need: Resources
) -> Block:
    """VMs that go to one host together, with what bindings (by VM) and pinning leave them.

    Those that must share a host and must not are allowed nowhere.
    """
    apart: list[str] = []
    only: set[frozenset[str]] = set()
    never: set[frozenset[str]] = set()
    for vm in vms:
        pinned = snapshot.vm_by_id[vm].bound_to
        if pinned is not None:
            only.add(pinned)
        for one in binding.get(vm, ()):
            if one.apart:
                apart.append(one.group.id)
            if one.only is not None:
                only.add(one.only)
            never.add(one.never)
    tags = frozenset(apart)
    if len(apart) > len(tags):
        only.add(frozenset())
    allowed = frozenset.intersection(*only) if only else None
    return Block(vms, need, allowed, frozenset().union(*never), tags)


def _binding(snapshot: Snapshot, group: AffinityGroup) -> Binding:
    vms_rule, hosts_rule = group.vms_rule, group.hosts_rule
    listed = listed_hosts(snapshot, group)
    on_hosts = hosts_rule.hard and configured(snapshot, group)
    return Binding(
        group=group,
        vms=members(snapshot).get(group.id, group.vms),
        together=vms_rule.hard and vms_rule.positive,
        apart=vms_rule.hard and not vms_rule.positive,
        only=listed if on_hosts and hosts_rule.positive else None,
        never=listed if on_hosts and not hosts_rule.positive else frozenset(),
    )
