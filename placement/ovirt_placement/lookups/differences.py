"""What differs between two snapshots, and what a snapshot's own look-ups keep where little does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from operator import is_not
from typing import TypeAlias

from ovirt_placement.model import Snapshot, Vm

Exchanged: TypeAlias = Mapping[str, Vm | None]

#: This many VMs may have come or gone at once.
_MOST_CAME = 8
#: Parts of a snapshot that say which VMs there are groups for, and what is looked up in nothing else.
_FRAME = ("clusters", "affinity_groups", "affinity_labels")
_OF_FRAME = ("cluster_by_id", "label_by_id", "group_by_id", "group_vms", "group_hosts", "groups_of_vm")
_OF_HOSTS = ("host_by_id", "hosts_of_cluster")
#: In a snapshot's dictionary: the VMs of the one before, and what `exchanged_vms` found.
EXCHANGED = f"{__name__}.exchanged"


def exchanged_vms(before: Snapshot, now: Snapshot) -> Exchanged | None:
    """The VMs that are other objects now, by id, None for those that are gone.

    None if many came or went, or if they changed places: then it is quicker to look at all of them again.
    """
    if before.vms is now.vms:
        return {}
    known: tuple[Sequence[Vm], Exchanged | None] | None = now.__dict__.get(EXCHANGED)
    if known is None or known[0] is not before.vms:
        known = now.__dict__[EXCHANGED] = (before.vms, _exchanged(before.vms, now.vms))
    return known[1]


def _exchanged(before: Sequence[Vm], now: Sequence[Vm]) -> Exchanged | None:
    if abs(len(before) - len(now)) > _MOST_CAME:
        return None
    if len(before) == len(now):
        pairs = [(before[place], now[place]) for place, other in enumerate(map(is_not, before, now)) if other]
        if all(one.id == other.id for one, other in pairs):
            return {other.id: other for _, other in pairs}
    return _in_step(before, now)


def _in_step(before: Sequence[Vm], now: Sequence[Vm]) -> Exchanged | None:
    """None if, but at the end, more than one VM at a time came or went, or if they changed places."""
    found: dict[str, Vm | None] = {}
    old = new = 0
    while old < len(before) and new < len(now):
        one, other = before[old], now[new]
        if one is other or one.id == other.id:
            if one is not other:
                found[other.id] = other
            old, new = old + 1, new + 1
        elif old + 1 < len(before) and before[old + 1].id == other.id:
            found.setdefault(one.id, None)
            old += 1
        elif new + 1 < len(now) and now[new + 1].id == one.id:
            found[other.id] = other
            new += 1
        else:
            return None
    for vm in before[old:]:
        found.setdefault(vm.id, None)
    found.update({vm.id: vm for vm in now[new:]})
    return found


def exchanged_ids(before: Mapping[str, object], now: Mapping[str, object]) -> set[str]:
    """What is another object now, or only in one of the two."""
    if before is now:
        return set()
    return {name for name, one in now.items() if before.get(name) is not one} | (before.keys() - now.keys())


def differing_in_pending(one: Snapshot, other: Snapshot) -> set[str]:
    """The VMs of which not the same is pending in both."""
    if one.pending == other.pending:
        return set()
    return {entry.vm for entry in {*one.pending} ^ {*other.pending}}


def same_members(before: Snapshot, now: Snapshot, exchanged: Exchanged) -> bool:
    """Whether all groups have the same members: groups and clusters are the same, and each VM's cluster.

    A VM that came or went was no member if no group names it.
    """
    if any(getattr(before, part) is not getattr(now, part) for part in _FRAME):
        return False
    came_or_went = set()
    for name, vm in exchanged.items():
        known = before.vm_by_id.get(name)
        if known is None or vm is None:
            came_or_went.add(name)
        elif known.cluster != vm.cluster:
            return False
    return not came_or_went or all(map(came_or_went.isdisjoint, before.group_vms.values()))


def keep_own(
    snapshot: Snapshot,
    before: Snapshot,
    exchanged: Exchanged,
    differing: Collection[str],
    *,
    members: bool,
) -> None:
    """Let a snapshot have of the look-ups of its own what those of the one before say of it, too."""
    own, known = snapshot.__dict__, before.__dict__
    if "vm_by_id" in known and "vm_by_id" not in own:
        own["vm_by_id"] = _with_exchanged(known["vm_by_id"], exchanged)
    names = (*(_OF_FRAME if members else ()), *(_OF_HOSTS if before.hosts is snapshot.hosts else ()))
    for name in names:
        if name in known:
            own.setdefault(name, known[name])
    if "pending_hosts" in known and "pending_hosts" not in own:
        own["pending_hosts"] = _pending_hosts(snapshot, known["pending_hosts"], {*exchanged, *differing})


def _with_exchanged(vms: dict[str, Vm], exchanged: Exchanged) -> dict[str, Vm]:
    if not exchanged:
        return vms
    found = dict(vms)
    for name, vm in exchanged.items():
        if vm is None:
            del found[name]
        else:
            found[name] = vm
    return found


def _pending_hosts(
    snapshot: Snapshot, before: Mapping[str, tuple[str, ...]], differing: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """What `Snapshot.pending_hosts` finds, where it may be otherwise than before for these VMs alone."""
    ways: defaultdict[str, list[str]] = defaultdict(list)
    if differing:
        for entry in snapshot.pending:
            if entry.vm in differing:
                ways[entry.vm].append(entry.host)
    found = dict(before)
    for name in differing:
        vm = snapshot.vm_by_id.get(name)
        if vm is not None and vm.migrating_to is not None:
            ways[name].append(vm.migrating_to)
        found.pop(name, None)
        if name in ways:
            found[name] = tuple(dict.fromkeys(ways[name]))
    return found
