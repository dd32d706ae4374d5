"""The VMs of failed hosts as blocks: what they need, what ties them, and what smaller failures decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ovirt_placement.lookups.index import once_whatever_is_pending
from ovirt_placement.model import AffinityGroup, Snapshot, Vm
from ovirt_placement.rules.affinity.blocks import bindings_of, block_of, gather
from ovirt_placement.rules.affinity.groups import connected, hard_positive_group_of, members
from ovirt_placement.rules.elements.assignment import NOTHING, Block, Hosts, Resources, first_fit
from ovirt_placement.rules.elements.placement import destinations, occupied

#: What one VM needs on another host.
Need = Callable[[Vm], Resources]
#: What a VM of no such group has.
NONE: frozenset[str] = frozenset()


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


@once_whatever_is_pending
def bond_of(snapshot: Snapshot) -> Mapping[str, str]:
    """By VM, a name of all that hard positive groups tie to it, in a chain if need be; nothing if alone."""
    chains = connected(
        snapshot.group_vms[group.id]
        for group in _hard(snapshot, positive=True)
        if snapshot.group_vms[group.id]
    )
    return {vm: chain[0] for chain in chains if len(chain) > 1 for vm in chain}


@once_whatever_is_pending
def rivalries_of(snapshot: Snapshot) -> Mapping[str, frozenset[str]]:
    """By VM, its hard negative groups: no two VMs of one share a host."""
    found: dict[str, set[str]] = {}
    for group in _hard(snapshot, positive=False):
        for vm in snapshot.group_vms[group.id]:
            found.setdefault(vm, set()).add(group.id)
    return {vm: frozenset(groups) for vm, groups in found.items()}


def _hard(snapshot: Snapshot, *, positive: bool) -> list[AffinityGroup]:
    return [
        group
        for group in snapshot.affinity_groups
        if group.vms_rule.hard and group.vms_rule.positive is positive
    ]


class Combined(NamedTuple):
    """A home for each VM, and those of the starts that filters have not been asked about yet."""

    homes: dict[str, str]
    again: dict[str, str]


class Combining:
    """Combines evacuations on the hosts of one cluster.

    `shared` says that memory and CPU, and hard VM groups, are all that connects VMs which start on one host.
    """

    def __init__(self, snapshot: Snapshot, hosts: Hosts, need: Need, *, shared: bool) -> None:
        self._snapshot = snapshot
        self._hosts = hosts
        self._need = need
        self._shared = shared

    def combine(
        self,
        failed: Sequence[str],
        evacuations: Sequence[Mapping[str, str]],
        order: Callable[[], Sequence[str]],
    ) -> Combined | None:
        """Find homes for all VMs of the failed hosts, near those that they have already; None if that fails.

        `evacuations` are the homes after the failure of some of the hosts, together of all. Homes that are
        sought again are tried in this order.
        """
        gone = frozenset(failed)
        taken = _Taken(self._snapshot, self._need)
        stray = self._keep_homes(gone, evacuations, taken)
        if not stray:
            return Combined(taken.homes, {})
        blocks = blocks_of(self._snapshot, stray, gone, self._need)
        left = {host: room for host, room in self._hosts.items() if host not in gone}
        for host in taken.vms_of:
            if self._shared:
                left[host] = taken.rest(host, left[host])
            else:
                del left[host]
        open_blocks = [taken.narrowed(block) for block in blocks]
        homes, _ = first_fit(open_blocks, left, [host for host in order() if host in left])
        if homes is None:
            return None
        again = {vm: home for block, home in zip(blocks, homes, strict=True) for vm in block.vms}
        crowd = {vm: home for home in dict.fromkeys(homes) for vm in taken.vms_of.get(home, ())}
        crowd = {vm: taken.homes[vm] for vm in taken.homes if vm in crowd}
        return Combined({**taken.homes, **again}, {**crowd, **again})

    def _keep_homes(
        self, gone: frozenset[str], evacuations: Sequence[Mapping[str, str]], taken: _Taken
    ) -> dict[str, None]:
        """Keep all homes that stay good; return VMs that must look for another one, with all tied to them."""
        stray: dict[str, None] = {}
        for number, homes in enumerate(evacuations):
            crowded = frozenset() if self._shared else frozenset(taken.vms_of)
            for vm, home in homes.items():
                if vm in stray or taken.homes.get(vm) == home:
                    continue
                if vm in taken.homes:  # its host is in both failures, and peers may reckon with either home
                    taken.remove(vm)
                    stray[vm] = None
                    continue
                good = home not in gone and home not in crowded
                if good and (number == 0 or taken.has_room(vm, home, self._hosts[home])):
                    taken.add(vm, home)
                else:
                    stray[vm] = None
        return self._with_tied(stray, taken) if stray else stray

    def _with_tied(self, stray: dict[str, None], taken: _Taken) -> dict[str, None]:
        bonds = bond_of(self._snapshot)
        loose = {bonds[vm] for vm in stray if vm in bonds}
        for vm in [vm for vm in taken.homes if bonds.get(vm) in loose] if loose else ():
            taken.remove(vm)
            stray[vm] = None
        return stray


class _Taken:
    """Homes that are settled, and what they leave there."""

    def __init__(self, snapshot: Snapshot, need: Need) -> None:
        self._snapshot = snapshot
        self._need = need
        self._rivalries = rivalries_of(snapshot)
        self.homes: dict[str, str] = {}
        self.vms_of: dict[str, list[str]] = {}

    def add(self, vm: str, home: str) -> None:
        self.homes[vm] = home
        self.vms_of.setdefault(home, []).append(vm)

    def remove(self, vm: str) -> None:
        home = self.homes.pop(vm)
        self.vms_of[home].remove(vm)
        if not self.vms_of[home]:
            del self.vms_of[home]

    def has_room(self, vm: str, home: str, room: Resources) -> bool:
        """Whether a VM may come besides those that are there already."""
        if home not in self.vms_of:
            return True
        if not self.rest(home, room).cover(self._need(self._snapshot.vm_by_id[vm])):
            return False
        return self._rivalries.get(vm, NONE).isdisjoint(self._rivalries_at(home))

    def rest(self, home: str, room: Resources) -> Resources:
        needs = [self._need(self._snapshot.vm_by_id[vm]) for vm in self.vms_of.get(home, ())]
        used = (
            Resources(sum(one.memory for one in needs), sum(one.cpu for one in needs)) if needs else NOTHING
        )
        return room.without(used)

    def narrowed(self, block: Block) -> Block:
        """The block without the hosts where a VM is settled that one of its VMs must be apart from."""
        own = frozenset[str]().union(*(self._rivalries.get(vm, NONE) for vm in block.vms))
        if not own:
            return block
        return block.narrowed(None, frozenset(self._holding(own)))

    def _holding(self, rivalries: frozenset[str]) -> Iterator[str]:
        return (home for home in self.vms_of if not rivalries.isdisjoint(self._rivalries_at(home)))

    def _rivalries_at(self, home: str) -> Iterable[str]:
        return {group for vm in self.vms_of[home] for group in self._rivalries.get(vm, NONE)}
