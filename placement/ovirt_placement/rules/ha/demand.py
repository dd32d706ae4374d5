"""What the highly available VMs of failed hosts need, and what the surviving hosts can give.

Memory is in MiB. CPU is in millionths of a percent of a core, so that nothing is lost by rounding
(docs/rules.md, HC3, HC7): a VM brings its own use along, whatever the size of the host it came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import floor

from ovirt_placement.model import Cluster, Host, Snapshot, Vm
from ovirt_placement.rules.affinity.blocks import bindings_of, block_of, gather
from ovirt_placement.rules.affinity.membership import members
from ovirt_placement.rules.affinity.unified_groups import hard_positive_group_of
from ovirt_placement.rules.locations import destinations, occupied
from ovirt_placement.rules.solving.problem import Block, Resources

_MILLIONTHS = 10**6


def room_of(host: Host, cluster: Cluster) -> Resources:
    """What a host can still take; one without CPU statistics can take no CPU load (as in the engine).

    Memory of pending VMs is already deducted from `free_mb` (HC4).
    """
    cores = (host.threads or host.cores) if cluster.count_threads_as_cores else host.cores
    idle = 0.0 if host.cpu_percent is None else max(0.0, 100 - host.cpu_percent)
    return Resources(max(0, host.free_mb), round(idle * cores * _MILLIONTHS))


def blocks_of(snapshot: Snapshot, vms: Iterable[str], failed: frozenset[str]) -> tuple[Block, ...]:
    """The VMs to restart as blocks, with what hard affinity and pinning leave them.

    VMs that a positive group ties together and of which no peer survives go to one host, whichever.
    With a peer that survives, each goes to a host of such a peer. VMs that must share a host and must
    not are admitted nowhere. What is not highly available on a failed host is gone and holds nobody.
    """
    blocks: list[Block] = []
    for together in gather(vms, hard_positive_group_of(snapshot)):
        gathering = _gathering(snapshot, together[0], failed)
        parts = [(vm,) for vm in together] if gathering else [together]
        blocks += [_block(snapshot, part, gathering or None, failed) for part in parts]
    return tuple(blocks)


def _gathering(snapshot: Snapshot, vm: str, failed: frozenset[str]) -> frozenset[str]:
    """Hosts of those that positive groups tie to the VM and that survive."""
    unified = hard_positive_group_of(snapshot).get(vm)
    surviving = _surviving(snapshot, unified.vms if unified else (), failed)
    return frozenset(host for peer in surviving for host in destinations(snapshot, peer)) - failed


def _block(
    snapshot: Snapshot, vms: tuple[str, ...], gathering: frozenset[str] | None, failed: frozenset[str]
) -> Block:
    block = block_of(snapshot, vms, bindings_of(snapshot), _need(snapshot, vms))
    held_by_rivals = frozenset(
        host
        for group in block.apart
        for peer in _surviving(snapshot, members(snapshot)[group], failed)
        for host in occupied(snapshot, peer)
    )
    return block.narrowed(gathering, held_by_rivals)


def _need(snapshot: Snapshot, vms: tuple[str, ...]) -> Resources:
    needs = [need_of(snapshot.vm_by_id[vm]) for vm in vms]
    return Resources(sum(need.memory for need in needs), sum(need.cpu for need in needs))


def need_of(vm: Vm) -> Resources:
    """What a VM needs elsewhere: what it uses, half a MiB rounded up, and at least what it is guaranteed."""
    used = floor(vm.memory_mb * (vm.usage_mem_percent or 0) / 100 + 0.5)
    return Resources(max(used, vm.guaranteed_mb), round((vm.usage_cpu_percent or 0) * vm.vcpus * _MILLIONTHS))


def _surviving(snapshot: Snapshot, vms: Iterable[str], failed: frozenset[str]) -> Iterator[str]:
    """Those of the VMs that are on no failed host; what moves away from one is gone with it."""
    return (vm for vm in vms if snapshot.vm_by_id[vm].host not in failed)
