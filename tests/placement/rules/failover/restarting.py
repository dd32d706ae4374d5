"""Restarts after a failure written down a second time, in the simplest way: every order, every host.

It follows docs/rules.md and, for placement keys, their own reference, and shares no code with the rules: of
the product it knows the records of a snapshot alone.
"""

from collections.abc import Sequence
from itertools import combinations

from msgspec.structs import replace

from ovirt_placement.model import AffinityGroup, Host, Pending, Snapshot, Vm
from ovirt_placement.rules.placement_keys.keys import DEFAULTS
from tests.builders import CLUSTER, needed_mb
from tests.placement.rules.placement_keys import reference


def survives(state: Snapshot, failed: tuple[str, ...]) -> bool:
    """Whether there is an order of starts, each with a host that everybody lets it have."""
    lost = [vm.id for vm in state.vms if vm.ha and vm.host in failed]
    waiting = [(crash(state, failed), frozenset(lost))]
    seen: set[frozenset[Pending]] = set()
    while waiting:
        now, left = waiting.pop()
        if not left:
            return True
        if frozenset(now.pending) not in seen:
            seen.add(frozenset(now.pending))
            waiting += [
                (launch(now, vm, host.id), left - {vm})
                for vm in left
                for host in now.hosts
                if lets(now, now.vm_by_id[vm], host)
            ]
    return False


def lost_sets(state: Snapshot, failing: Sequence[str], most: int) -> list[tuple[str, ...]]:
    """The sets of at most this many hosts whose failure is not survived."""
    sets = (failed for size in range(1, most + 1) for failed in combinations(failing, size))
    return [failed for failed in sets if not survives(state, failed)]


def smallest(lost: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The sets that contain no other."""
    return [one for one in lost if not any(set(other) < set(one) for other in lost)]


def passes(state: Snapshot, failed: tuple[str, ...], homes: dict[str, str]) -> bool:
    """Whether everybody lets each VM start on its home, in this order."""
    now = crash(state, failed)
    for vm, home in homes.items():
        if not lets(now, now.vm_by_id[vm], now.host_by_id[home]):
            return False
        now = launch(now, vm, home)
    return True


def crash(state: Snapshot, failed: tuple[str, ...]) -> Snapshot:
    """Nobody answers on those hosts; what was on its way from there will not arrive."""
    hosts, vms = [], []
    for host in state.hosts:
        free = host.free_mb
        for vm in state.vms:
            entries = [entry for entry in state.pending if (entry.vm, entry.host) == (vm.id, host.id)]
            leaving = vm.host in failed and vm.status == "migrating"
            if leaving and (entries or vm.migrating_to == host.id):
                promised = entries[0].memory_mb if entries else None
                free += needed_mb(vm) + (0 if promised is None else promised - vm.memory_mb)
        status = "non_responsive" if host.id in failed else host.status
        hosts.append(replace(host, free_mb=free, status=status))
    for vm in state.vms:
        if vm.host in failed:
            vms.append(replace(vm, host=None, status="down", migrating_to=None))
        elif vm.migrating_to in failed:
            vms.append(replace(vm, status="up", migrating_to=None))
        else:
            vms.append(vm)
    gone = {vm.id for vm in state.vms if vm.host in failed}
    pending = (entry for entry in state.pending if entry.vm not in gone and entry.host not in failed)
    return replace(state, hosts=tuple(hosts), vms=tuple(vms), pending=tuple(pending))


def lost_later(state: Snapshot, failing: Sequence[str], most: int) -> bool:
    """Whether a failure may not be survived once all has arrived, or it is not known where a VM goes."""
    emptied = {host.id for host in state.hosts if host.status == "preparing_for_maintenance"}
    for vm in (one for one in state.vms if one.cluster == CLUSTER):
        *_, target = ("", *heading(state, vm.id))
        if target == vm.host and (vm.status == "migrating" and not vm.migrating_to):
            return True
        if target in emptied and (target != vm.host or vm.migratable):
            return True
        if vm.ha and target not in ("", *failing):  # it arrives where it is lost until it runs elsewhere
            return True
    return bool(lost_sets(arrive(state), failing, most))


def arrive(state: Snapshot) -> Snapshot:
    """All VMs of the cluster are where they were going; those that migrate have their memory there."""
    for vm in (one for one in state.vms if one.cluster == CLUSTER):
        *_, target = ("", *heading(state, vm.id))
        if target in ("", vm.host):
            continue
        begun = vm.status in ("migrating", "down")
        there = replace(vm, host=target, status="up", migrating_to=None)
        if not begun:
            state = with_less(state, vm, target)
        if vm.host is not None:
            state = with_less(state, vm, vm.host, sign=-1)
        state = replace(
            state,
            vms=tuple(there if one.id == vm.id else one for one in state.vms),
            pending=tuple(entry for entry in state.pending if not begun or entry.vm != vm.id),
        )
    return state


def launch(state: Snapshot, vm_id: str, host_id: str) -> Snapshot:
    filled = with_less(state, state.vm_by_id[vm_id], host_id)
    return replace(filled, pending=(*state.pending, Pending(vm=vm_id, host=host_id)))


def with_less(state: Snapshot, vm: Vm, host_id: str, sign: int = 1) -> Snapshot:
    """It takes all of its memory of what can be handed out, and of what is physically free what it used."""

    def filled(host: Host) -> Host:
        free = host.memory_free_mb
        if free is not None:
            free = min(max(0, free - sign * used_mb(vm)), max(free, host.memory_mb))
        return replace(host, free_mb=host.free_mb - sign * needed_mb(vm), memory_free_mb=free)

    return replace(state, hosts=tuple(filled(one) if one.id == host_id else one for one in state.hosts))


def used_mb(vm: Vm) -> int:
    return vm.memory_mb if vm.usage_mem_percent is None else round(vm.memory_mb * vm.usage_mem_percent / 100)


def lets(state: Snapshot, vm: Vm, host: Host) -> bool:
    """Whether every filter lets the VM start there."""
    cluster = state.cluster_by_id[CLUSTER]
    cores = host.threads if cluster.count_threads_as_cores and host.threads else host.cores
    policy = cluster.scheduling_policy
    keyed = policy is not None and "PlacementKeyFilter" in policy.filters
    return (
        host.status == "up"
        and host.cluster == CLUSTER
        and needed_mb(vm) <= host.free_mb
        and has_physically(state, vm, host)
        and max(vm.vcpus, *(one.vcpus for one in there(state, host)), 0) <= cores
        and (vm.migratable or not vm.pinned_hosts or host.id in vm.pinned_hosts)
        and lets_hosts(state, vm, host)
        and lets_peers(state, vm, host)
        and lets_unified(state, vm, host)
        and not lacks_unit(state, vm)
        and (not keyed or host.id in reference.acceptable(state, vm, [host], DEFAULTS))
    )


def has_physically(state: Snapshot, vm: Vm, host: Host) -> bool:
    """Whether what QEMU takes at once is there, in memory and swap, besides that of others that come.

    What is free is shown in whole percents: one that may be there counts.
    """
    if host.memory_free_mb is None or host.swap_free_mb is None:
        return True
    coming = {entry.vm for entry in state.pending if entry.host == host.id}
    coming |= {one.id for one in state.vms if one.migrating_to == host.id}
    taken = sum(64 + one.memory_mb // 512 for one in state.vms if one.id in coming)
    there = host.memory_free_mb + host.memory_mb // 100 - taken
    return there >= 0 and vm.memory_mb + 64 + vm.memory_mb // 512 <= there + host.swap_free_mb


def lets_hosts(state: Snapshot, vm: Vm, host: Host) -> bool:
    """The engine's rule is the stricter one: a positive group without hosts shuts out every host."""
    groups = [group for group in groups_with(state, vm.id) if group.hosts_rule.hard]
    return all((host.id in group.hosts) is group.hosts_rule.positive for group in groups)


def lets_peers(state: Snapshot, vm: Vm, host: Host) -> bool:
    """The engine's own rule between VMs: direct peers, but those that run in another cluster."""
    wanted: set[str] = set()
    for group in groups_with(state, vm.id):
        if group.vms_rule.hard:
            seen = {peer for peer in everybody(state, group) - {vm.id} if not out_of_sight(state, vm, peer)}
            found = {place for peer in seen for place in heading(state, peer)}
            if not group.vms_rule.positive and host.id in found:
                return False
            wanted |= found if group.vms_rule.positive else set()
    return not wanted or host.id in wanted


def out_of_sight(state: Snapshot, vm: Vm, peer: str) -> bool:
    known = state.vm_by_id[peer]
    coming = known.migrating_to or any(entry.vm == peer for entry in state.pending)
    return known.cluster != vm.cluster and not coming


def there(state: Snapshot, host: Host) -> list[Vm]:
    """Who runs on a host or is on the way to it."""
    return [vm for vm in state.vms if host.id in (vm.host, *heading(state, vm.id))]


def lets_unified(state: Snapshot, vm: Vm, host: Host) -> bool:
    """Ours: chains count, members of other clusters do not, and both ends of a migration keep rivals off."""
    tied = {vm.id}
    hard = [group for group in state.affinity_groups if group.vms_rule.hard]
    for _ in hard:
        for group in hard:
            if group.vms_rule.positive and tied & own(state, group):
                tied |= own(state, group)
    wanted = {place for peer in tied - {vm.id} for place in heading(state, peer)}
    rivals = {
        peer
        for group in hard
        if not group.vms_rule.positive and vm.id in own(state, group)
        for peer in own(state, group) - {vm.id}
    }
    held = {place for peer in rivals for place in (*heading(state, peer), state.vm_by_id[peer].host)}
    return host.id not in held and (not wanted or host.id in wanted)


def lacks_unit(state: Snapshot, vm: Vm) -> bool:
    """Whether the policy refuses VMs of soft groups that it does not weigh; here it weighs nothing."""
    cluster = state.cluster_by_id[CLUSTER]
    refuses = cluster.scheduling_properties.get("affinity_missing_unit") == "reject"
    return refuses and any(
        group.vms_rule.enabled and not group.vms_rule.enforcing and len(own(state, group)) > 1
        for group in groups_with(state, vm.id)
        if vm.id in own(state, group)
    )


def groups_with(state: Snapshot, vm: str) -> list[AffinityGroup]:
    return [group for group in state.affinity_groups if vm in everybody(state, group)]


def everybody(state: Snapshot, group: AffinityGroup) -> set[str]:
    labels = [label for label in state.affinity_labels if label.id in group.vm_labels]
    return {*group.vms, *(vm for label in labels for vm in label.vms)}


def own(state: Snapshot, group: AffinityGroup) -> set[str]:
    return {vm for vm in everybody(state, group) if state.vm_by_id[vm].cluster == group.cluster}


def heading(state: Snapshot, vm: str) -> list[str]:
    """Where a VM is to be found: where it is going, else where it runs."""
    known = state.vm_by_id[vm]
    going = [entry.host for entry in state.pending if entry.vm == vm]
    going += [known.migrating_to] if known.migrating_to else []
    return going or ([known.host] if known.host else [])
