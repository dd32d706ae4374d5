"""The VMs of failed hosts as blocks: what they need, and where hard affinity and pinning let them go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.affinity.blocks import bindings_of, block_of, gather
from ovirt_placement.rules.affinity.membership import members
from ovirt_placement.rules.affinity.unified_groups import hard_positive_group_of
from ovirt_placement.rules.locations import destinations, occupied
from ovirt_placement.rules.solving.problem import Block, Resources

#: What one VM needs on another host.
Need = Callable[[Vm], Resources]


def blocks_of(
    snapshot: Snapshot, vms: Iterable[str], failed: frozenset[str], need: Need
) -> tuple[Block, ...]:
    """The VMs to restart as blocks, with what hard affinity and pinning leave them.

    VMs that a positive group ties together and of which no peer survives go to one host, whichever.
    With a peer that survives, each goes to a host of such a peer. VMs that must share a host and must
    not are admitted nowhere. What is not highly available on a failed host is gone and holds nobody.
    """
    blocks: list[Block] = []
    for together in gather(vms, hard_positive_group_of(snapshot)):
        gathering = _gathering(snapshot, together[0], failed)
        parts = [(vm,) for vm in together] if gathering else [together]
        blocks += [_block(snapshot, part, gathering or None, failed, need) for part in parts]
    return tuple(blocks)


def _gathering(snapshot: Snapshot, vm: str, failed: frozenset[str]) -> frozenset[str]:
    """Hosts of those that positive groups tie to the VM and that survive."""
    unified = hard_positive_group_of(snapshot).get(vm)
    peers = _surviving(snapshot, unified.vms if unified else (), failed)
    return frozenset(host for peer in peers for host in _whereabouts(snapshot, peer, failed))


def _whereabouts(snapshot: Snapshot, vm: str, failed: frozenset[str]) -> frozenset[str]:
    """Where a VM is to be found afterwards; one that was on its way to a failed host stays where it runs."""
    return frozenset(destinations(snapshot, vm)) - failed or frozenset(occupied(snapshot, vm)) - failed


def _block(
    snapshot: Snapshot,
    vms: tuple[str, ...],
    gathering: frozenset[str] | None,
    failed: frozenset[str],
    need: Need,
) -> Block:
    needs = [need(snapshot.vm_by_id[vm]) for vm in vms]
    together = Resources(sum(one.memory for one in needs), sum(one.cpu for one in needs))
    block = block_of(snapshot, vms, bindings_of(snapshot), together)
    held_by_rivals = frozenset(
        host
        for group in block.apart
        for peer in _surviving(snapshot, members(snapshot)[group], failed)
        for host in occupied(snapshot, peer)
    )
    return block.narrowed(gathering, held_by_rivals)


def _surviving(snapshot: Snapshot, vms: Iterable[str], failed: frozenset[str]) -> Iterator[str]:
    """Those of the VMs that are on no failed host; what moves away from one is gone with it."""
    return (vm for vm in vms if snapshot.vm_by_id[vm].host not in failed)
