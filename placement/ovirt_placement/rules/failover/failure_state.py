"""An engine's state just after hosts have failed, and after each start that follows.

Filters are asked about these states: so they judge a restart as they will when it comes to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from ovirt_placement.model import AffinityGroup, Host, Pending, Snapshot, Vm
from ovirt_placement.rules.affinity.unified_groups import hard_positive_group_of
from ovirt_placement.rules.index import share
from ovirt_placement.rules.memory import promised_mb, with_arrived


def part_of(snapshot: Snapshot, vms: Iterable[str], hosts: AbstractSet[str]) -> Snapshot:
    """As much of a state as says whether these VMs may start on these hosts.

    That is what is on the hosts or on its way there, and the VMs' groups with all who belong to them.
    """
    groups = {group.id: group for vm in vms for group in _groups(snapshot, vm)}
    arriving = (vm for vm, targets in snapshot.pending_hosts.items() if not hosts.isdisjoint(targets))
    kept = dict.fromkeys(vms)
    kept.update((vm, None) for group in groups for vm in snapshot.group_vms[group])
    kept.update((vm.id, None) for host in hosts for vm in snapshot.vms_of_host.get(host, ()))
    kept.update((vm, None) for vm in arriving)
    part = replace(
        snapshot,
        hosts=tuple(snapshot.host_by_id[host] for host in hosts),
        vms=tuple(snapshot.vm_by_id[vm] for vm in kept if vm in snapshot.vm_by_id),
        affinity_groups=tuple(groups.values()),
        pending=tuple(entry for entry in snapshot.pending if entry.vm in kept),
    )
    share(part, snapshot)
    return part


def after_failure(snapshot: Snapshot, failed: frozenset[str]) -> Snapshot:
    """Failed hosts answer no more, and their VMs are down. Migrations from and to them are over."""
    lost = frozenset(vm.id for vm in snapshot.vms if vm.host in failed)
    back = given_back(snapshot, lost)
    after = replace(
        snapshot,
        hosts=tuple(_fallen(host, failed, back) for host in snapshot.hosts),
        vms=tuple(_left(vm, failed) for vm in snapshot.vms),
        pending=tuple(
            entry for entry in snapshot.pending if entry.vm not in lost and entry.host not in failed
        ),
    )
    share(after, snapshot)
    return after


def after_start(snapshot: Snapshot, vm_id: str, host_id: str) -> Snapshot:
    """A VM has been started: its memory is handed out, and it takes as much of it as it used before."""
    vm = snapshot.vm_by_id[vm_id]
    started = replace(
        snapshot,
        hosts=tuple(with_arrived(host, vm) if host.id == host_id else host for host in snapshot.hosts),
        pending=(*snapshot.pending, Pending(vm=vm_id, host=host_id)),
    )
    share(started, snapshot)
    return started


def given_back(snapshot: Snapshot, lost: Iterable[str]) -> Mapping[str, int]:
    """Memory by host, in MiB, that the engine has promised to VMs which will not arrive.

    It has to those that it shows as migrating: what is but planned, or expected, took nothing yet.
    """
    promised = {(entry.vm, entry.host): entry for entry in snapshot.pending}
    back: Counter[str] = Counter()
    for vm in (snapshot.vm_by_id[vm_id] for vm_id in lost):
        for host in snapshot.pending_hosts.get(vm.id, ()) if vm.status == "migrating" else ():
            back[host] += promised_mb(vm, promised.get((vm.id, host)))
    return back


def _groups(snapshot: Snapshot, vm: str) -> Iterator[AffinityGroup]:
    """The groups of a VM, and all that hard positive ones among them are chained to."""
    yield from snapshot.groups_of_vm.get(vm, ())
    unified = hard_positive_group_of(snapshot).get(vm)
    if unified is not None:
        yield from (snapshot.group_by_id[group] for group in unified.groups)


def _fallen(host: Host, failed: frozenset[str], back: Mapping[str, int]) -> Host:
    if host.id in failed:
        return replace(host, status="non_responsive")
    return replace(host, free_mb=host.free_mb + back[host.id]) if host.id in back else host


def _left(vm: Vm, failed: frozenset[str]) -> Vm:
    if vm.host in failed:
        return replace(vm, host=None, status="down", migrating_to=None)
    return replace(vm, status="up", migrating_to=None) if vm.migrating_to in failed else vm
