"""What the highly available VMs of failed hosts need, and what the surviving hosts can give.

Memory is in MiB. CPU is in millionths of a percent of a core, so that nothing is lost by rounding
(docs/rules.md, HC3, HC7): a VM brings its own use along, whatever the size of the host it came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import floor

from ovirt_placement.model import Cluster, Host, Snapshot, Vm
from ovirt_placement.rules.affinity.host_groups import configured, hard_host_groups_of, listed_hosts
from ovirt_placement.rules.affinity.membership import groups_of, members
from ovirt_placement.rules.affinity.unified_groups import hard_positive_group_of
from ovirt_placement.rules.locations import destinations, occupied
from ovirt_placement.rules.solving.assignment import Capacity, Load

_MILLIONTHS = 10**6


def capacity_of(host: Host, cluster: Cluster) -> Capacity:
    """What a host can still take; one without CPU statistics can take no CPU load (as in the engine).

    Memory of pending VMs is already deducted from `free_mb` (HC4).
    """
    cores = (host.threads or host.cores) if cluster.count_threads_as_cores else host.cores
    idle = 0.0 if host.cpu_percent is None else max(0.0, 100 - host.cpu_percent)
    return Capacity(max(0, host.free_mb), round(idle * cores * _MILLIONTHS))


def need_of(vm: Vm) -> Capacity:
    """What a VM needs elsewhere: what it uses, half a MiB rounded up, and at least what it is guaranteed."""
    used = floor(vm.memory_mb * (vm.usage_mem_percent or 0) / 100 + 0.5)
    return Capacity(max(used, vm.guaranteed_mb), round((vm.usage_cpu_percent or 0) * vm.vcpus * _MILLIONTHS))


def loads_of(snapshot: Snapshot, vms: Iterable[str], failed: frozenset[str]) -> tuple[Load, ...]:
    """The VMs to restart as loads, with what hard affinity and pinning leave them.

    VMs that a positive group ties together and of which no peer survives go to one host, whichever.
    With a peer that survives, each goes to a host of such a peer. VMs that must share a host and must
    not are admitted nowhere. What is not highly available on a failed host is gone and holds nobody.
    """
    loads: list[Load] = []
    for together in _tied(snapshot, vms):
        gathering = frozenset(
            host
            for peer in _unified_peers(snapshot, together[0])
            if peer not in together and _survives(snapshot, peer, failed)
            for host in destinations(snapshot, peer)
            if host not in failed
        )
        parts = [(vm,) for vm in together] if gathering else [together]
        loads += [_load(snapshot, part, gathering or None, failed) for part in parts]
    return tuple(loads)


def _tied(snapshot: Snapshot, vms: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """The VMs, those of one unified positive group together."""
    by_group: dict[str, list[str]] = {}
    for vm in vms:
        unified = hard_positive_group_of(snapshot).get(vm)
        by_group.setdefault(unified.vms[0] if unified else vm, []).append(vm)
    for together in by_group.values():
        yield tuple(together)


def _unified_peers(snapshot: Snapshot, vm: str) -> tuple[str, ...]:
    unified = hard_positive_group_of(snapshot).get(vm)
    return unified.vms if unified else ()


def _load(
    snapshot: Snapshot, vms: tuple[str, ...], gathering: frozenset[str] | None, failed: frozenset[str]
) -> Load:
    restrictions = [gathering] if gathering else []
    if _clash(snapshot, vms):
        restrictions.append(frozenset())
    forbidden: set[str] = set()
    for vm in vms:
        restrictions += _allowed(snapshot, snapshot.vm_by_id[vm])
        forbidden |= _forbidden(snapshot, vm, failed)
    needs = [need_of(snapshot.vm_by_id[vm]) for vm in vms]
    return Load(
        vms=vms,
        need=Capacity(sum(need.memory for need in needs), sum(need.cpu for need in needs)),
        allowed=frozenset.intersection(*restrictions) if restrictions else None,
        forbidden=frozenset(forbidden),
        apart=frozenset(group for vm in vms for group in _negative_groups(snapshot, vm)),
    )


def _allowed(snapshot: Snapshot, vm: Vm) -> Iterator[frozenset[str]]:
    if vm.pinned_hosts and not vm.migratable:
        yield frozenset(vm.pinned_hosts)
    for group in hard_host_groups_of(snapshot).get(vm.id, ()):
        if group.hosts_rule.positive and configured(snapshot, group):
            yield listed_hosts(snapshot, group)


def _forbidden(snapshot: Snapshot, vm: str, failed: frozenset[str]) -> set[str]:
    """Hosts that a rule names, and those of negative peers that survive."""
    by_rule = {
        host
        for group in hard_host_groups_of(snapshot).get(vm, ())
        if not group.hosts_rule.positive
        for host in listed_hosts(snapshot, group)
    }
    return by_rule | {
        host
        for group in _negative_groups(snapshot, vm)
        for peer in members(snapshot)[group]
        if peer != vm and _survives(snapshot, peer, failed)
        for host in occupied(snapshot, peer)
    }


def _survives(snapshot: Snapshot, vm: str, failed: frozenset[str]) -> bool:
    return snapshot.vm_by_id[vm].host not in failed


def _negative_groups(snapshot: Snapshot, vm: str) -> tuple[str, ...]:
    return tuple(
        group.id
        for group in groups_of(snapshot).get(vm, ())
        if group.vms_rule.hard and not group.vms_rule.positive
    )


def _clash(snapshot: Snapshot, vms: tuple[str, ...]) -> bool:
    """Whether VMs that must share a host include two that must not."""
    groups = [group for vm in vms for group in _negative_groups(snapshot, vm)]
    return len(groups) > len(set(groups))
