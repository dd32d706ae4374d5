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
from ovirt_placement.rules.elements.constraints import Allowed, AtMost, Same


class Binding(Record, frozen=True):
    """What the hard rules of a group ask of its VMs, or a legacy label that acts as a group."""

    group: AffinityGroup
    vms: tuple[str, ...]
    forms: tuple[Same | AtMost | Allowed, ...]


@once_for_members
def bindings(snapshot: Snapshot) -> tuple[Binding, ...]:
    """Of each group that has VMs and a hard rule; legacy labels come last."""
    groups = (*snapshot.affinity_groups, *legacy_groups(snapshot))
    found = (_binding(snapshot, group) for group in groups)
    return tuple(one for one in found if one.vms and one.forms)


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
            for form in one.forms:
                if isinstance(form, AtMost):
                    apart.append(one.group.id)
                elif isinstance(form, Allowed):
                    (only if form.positive else never).add(form.hosts)
    tags = frozenset(apart)
    if len(apart) > len(tags):
        only.add(frozenset())
    allowed = frozenset.intersection(*only) if only else None
    return Block(vms, need, allowed, frozenset().union(*never), tags)


def _binding(snapshot: Snapshot, group: AffinityGroup) -> Binding:
    forms: list[Same | AtMost | Allowed] = []
    if group.vms_rule.hard:
        forms.append(Same() if group.vms_rule.positive else AtMost(1))
    if group.hosts_rule.hard and configured(snapshot, group):
        forms.append(Allowed(listed_hosts(snapshot, group), group.hosts_rule.positive))
    return Binding(group, members(snapshot).get(group.id, group.vms), tuple(forms))
