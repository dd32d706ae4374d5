"""Puts what is known of smaller failures together for a larger one: most homes stay, few are sought again.

A start learns the same whatever happens elsewhere: memory, hard negative groups and placement keys look at
the home alone, and hard positive groups at where the VM's peers are. So a home that was good after a
smaller failure is good after the larger one, unless it fails too, others start there as well, or VMs
that the VM is tied to must look for other homes: then it must as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.failover.demand import Need, blocks_of
from ovirt_placement.rules.failover.ties import NONE, bond_of, rivalries_of
from ovirt_placement.rules.solving.assignment import first_fit
from ovirt_placement.rules.solving.problem import NOTHING, Block, Hosts, Resources


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
        stray = self._keep(gone, evacuations, taken)
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

    def _keep(
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
