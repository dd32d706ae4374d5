"""What failures are judged by: homes for the VMs of failed hosts, and the engine's own check, made exact.

VMs are taken as blocks: what they need, and what ties them. The engine's check of HA reservation, softer than
asking every filter, looks at memory and CPU as used.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import floor

from ovirt_placement.lookups import once_whatever_is_pending
from ovirt_placement.model import Cluster, Host, Snapshot, Vm
from ovirt_placement.model.record import Record
from ovirt_placement.model.snapshot import grouped
from ovirt_placement.rules.affinity.constraints import asks_by_vm, block_of, gather
from ovirt_placement.rules.affinity.groups import connected, hard_positive_group_of, members
from ovirt_placement.rules.elements.assignment import (
    Block,
    Budget,
    BudgetSpentError,
    Homes,
    Hosts,
    Resources,
    first_fit,
    proves_impossible,
    search,
)
from ovirt_placement.rules.elements.placement import destinations, occupied
from ovirt_placement.rules.elements.resources import cores_of
from ovirt_placement.rules.failover.outcomes import Loss, Outcome, Survival, Unknown, protected

#: What a VM of no such group has.
NONE: frozenset[str] = frozenset()


def _gathering(snapshot: Snapshot, vm: str, failed: frozenset[str]) -> frozenset[str]:
    """Hosts of those that positive groups tie to the VM and that survive.

    One that was on its way to a failed host stays where it runs.
    """
    unified = hard_positive_group_of(snapshot).get(vm)
    found: set[str] = set()
    for peer in _surviving(snapshot, unified.vms if unified else (), failed):
        found |= {*destinations(snapshot, peer)} - failed or {*occupied(snapshot, peer)} - failed
    return frozenset(found)


def _surviving(snapshot: Snapshot, vms: Iterable[str], failed: frozenset[str]) -> Iterator[str]:
    """Those of the VMs that are on no failed host; what moves away from one is gone with it."""
    return (vm for vm in vms if snapshot.vm_by_id[vm].host not in failed)


@once_whatever_is_pending
def bond_of(snapshot: Snapshot) -> Mapping[str, str]:
    """By VM, a name of all that hard positive groups tie to it, in a chain if need be; nothing if alone."""
    groups = (one.id for one in snapshot.affinity_groups if one.vms_rule.hard and one.vms_rule.positive)
    chains = connected(filter(None, map(snapshot.group_vms.__getitem__, groups)))
    return {vm: chain[0] for chain in chains if len(chain) > 1 for vm in chain}


@once_whatever_is_pending
def rivalries_of(snapshot: Snapshot) -> Mapping[str, frozenset[str]]:
    """By VM, its hard negative groups: no two VMs of one share a host."""
    found: dict[str, set[str]] = {}
    for group in snapshot.affinity_groups:
        if group.vms_rule.hard and not group.vms_rule.positive:
            for vm in snapshot.group_vms[group.id]:
                found.setdefault(vm, set()).add(group.id)
    return {vm: frozenset(groups) for vm, groups in found.items()}


#: Steps for the search of one set, so that one hard set does not leave all others unjudged.
SEARCH_BUDGET = 400_000


#: CPU is in millionths of a percent of a core, so that nothing is lost by rounding (HC3, HC7): a VM brings
#: its own use along, whatever the size of the host it came from.
_MILLIONTHS = 10**6


class Measure:
    """What failures are judged by: the VMs of the hosts that may fail, and what hosts can take as homes."""

    #: Whether starts on different hosts have nothing to do with each other, but for affinity.
    separable: bool = True

    def __init__(self, snapshot: Snapshot, hosts: Iterable[str], rooms: Hosts) -> None:
        """`hosts` may fail."""
        self.hosts = tuple(hosts)
        self._snapshot = snapshot
        self._rooms = rooms
        self._vms = dict(protected(snapshot, self.hosts))
        #: Those VMs as blocks that no group ties to others: what fails makes no difference to them.
        self._free: dict[str, Block] = {}
        self._tied = rivalries_of(snapshot).keys() | bond_of(snapshot).keys()
        #: Most memory first: there a block fits soonest.
        self._roomiest = sorted(rooms, key=lambda host: (-rooms[host].memory, host))
        self._position = {host: number for number, host in enumerate(self._roomiest)}

    def vms_on(self, failed: tuple[str, ...]) -> tuple[str, ...]:
        """The VMs that would restart."""
        return tuple(vm for host in failed for vm in self._vms.get(host, ()))

    def judge(self, failed: tuple[str, ...], budget: Budget) -> Outcome:
        """Judge one failure. Raises `BudgetSpentError`."""
        raise NotImplementedError

    def _need_of(self, vm: Vm) -> Resources:
        """What a VM needs elsewhere."""
        raise NotImplementedError

    def _blocks_of(self, failed: tuple[str, ...]) -> tuple[Block, ...]:
        """The VMs to restart as blocks, with what hard affinity and pinning leave them.

        VMs that a positive group ties together and of which no peer survives go to one host, whichever.
        With a peer that survives, each goes to a host of such a peer. VMs that must share a host and must
        not are admitted nowhere. What is not highly available on a failed host is gone and ties no VM.
        """
        blocks, gone = list[Block](), frozenset(failed)
        for together in gather(self.vms_on(failed), hard_positive_group_of(self._snapshot)):
            if together[0] not in self._tied:
                if together[0] not in self._free:
                    self._free[together[0]] = self._as_block(together, None, gone)
                blocks.append(self._free[together[0]])
                continue
            gathering = _gathering(self._snapshot, together[0], gone)
            parts = [(vm,) for vm in together] if gathering else [together]
            blocks += [self._as_block(part, gathering or None, gone) for part in parts]
        return tuple(blocks)

    def _as_block(
        self, vms: tuple[str, ...], gathering: frozenset[str] | None, gone: frozenset[str]
    ) -> Block:
        snapshot = self._snapshot
        needs = [self._need_of(snapshot.vm_by_id[vm]) for vm in vms]
        need = Resources(sum(one.memory for one in needs), sum(one.cpu for one in needs))
        block = block_of(snapshot, vms, asks_by_vm(snapshot), need)
        held_by_rivals = frozenset(
            host
            for group in block.apart
            for peer in _surviving(snapshot, members(snapshot)[group], gone)
            for host in occupied(snapshot, peer)
        )
        return block.narrowed(gathering, held_by_rivals)

    def _without(self, failed: tuple[str, ...]) -> dict[str, Resources]:
        """What the hosts that are left can take."""
        left = dict(self._rooms)
        for host in failed:
            left.pop(host, None)
        return left

    def _fitted(
        self, failed: tuple[str, ...], blocks: Sequence[Block], left: Hosts, budget: Budget
    ) -> Outcome:
        """Homes on the hosts that are left. A loss is proven, and names what a greedy try left over."""
        unplaced = tuple(blocks)
        for order in (self._order_from(failed[0], blocks), self._roomiest, self._roomiest[::-1]):
            homes, rest = first_fit(blocks, left, order)
            if homes is not None:
                return Survival(failed, home_of_each(blocks, homes))
            unplaced = min(unplaced, rest, key=len)
        if not proves_impossible(blocks, left):
            try:
                with budget.share(SEARCH_BUDGET) as share:
                    homes = search(blocks, left, share)
            except BudgetSpentError:
                return Unknown(failed)
            if homes is not None:
                return Survival(failed, home_of_each(blocks, homes))
        return Loss(failed, tuple(vm for block in unplaced for vm in block.vms))

    def _order_from(self, host: str, blocks: Iterable[Block]) -> list[str]:
        """The hosts with room for the smallest block, from the one that comes after this one.

        Each failing host has a place of its own to begin at: those that fail together rarely reckon with the
        same homes.
        """
        least_mb = min((block.need.memory for block in blocks), default=0)
        count = bisect_right(self._roomiest, -least_mb, key=lambda host: -self._rooms[host].memory)
        start = (self._position.get(host, -1) + 1) % max(1, count)
        return self._roomiest[start:count] + self._roomiest[:start]


def by_home(homes: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    return grouped((home, vm) for vm, home in homes.items())


def home_of_each(blocks: Sequence[Block], homes: Homes) -> dict[str, str]:
    """The home of each VM, where homes are those of the blocks."""
    return {vm: home for block, home in zip(blocks, homes, strict=True) for vm in block.vms}


class Examined(Record, frozen=True):
    """What came of a failure, and the steps that it took."""

    outcome: Outcome
    steps: int


#: Examines failures of hosts and reports each, in their order: the caller may stop listening at any time.
Examiner = Callable[[Iterable[tuple[str, ...]]], Iterator[Examined]]


def examine(measure: Measure, failed: tuple[str, ...], steps: int) -> Examined:
    """Judge one failure in about this many steps: one, one for each VM to place, and those of a search.

    What takes more ends as unknown.
    """
    budget = Budget(steps)
    try:
        budget.spend(1 + len(measure.vms_on(failed)))
        outcome = measure.judge(failed, budget)
    except BudgetSpentError:
        outcome = Unknown(failed)
    return Examined(outcome, steps - budget.left)


def one_by_one(measure: Measure, steps: int) -> Examiner:
    """Examine in this process, each failure when it is asked for."""
    return lambda failures: (examine(measure, failed, steps) for failed in failures)


class Arithmetic(Measure):
    """A failure is survived if what the VMs use, and are guaranteed, fits on the other hosts."""

    def __init__(self, snapshot: Snapshot, cluster_id: str) -> None:
        cluster = snapshot.cluster_by_id[cluster_id]
        up = [host for host in snapshot.hosts_of_cluster.get(cluster_id, ()) if host.up]
        rooms = {host.id: _room_of(host, cluster) for host in up}
        super().__init__(snapshot, rooms, rooms)

    def judge(self, failed: tuple[str, ...], budget: Budget) -> Outcome:
        return self._fitted(failed, self._blocks_of(failed), self._without(failed), budget)

    def _need_of(self, vm: Vm) -> Resources:
        """What it uses, half a MiB rounded up, and at least what it is guaranteed."""
        used = floor(vm.memory_mb * (vm.usage_mem_percent or 0) / 100 + 0.5)
        cpu = round((vm.usage_cpu_percent or 0) * vm.vcpus * _MILLIONTHS)
        return Resources(max(used, vm.guaranteed_mb), cpu)


def _room_of(host: Host, cluster: Cluster) -> Resources:
    """What a host can still take; one without CPU statistics can take no CPU load (as in the engine).

    Memory of pending VMs is already deducted from `free_mb` (HC4).
    """
    idle = 0.0 if host.cpu_percent is None else max(0.0, 100 - host.cpu_percent)
    return Resources(max(0, host.free_mb), round(idle * cores_of(host, cluster) * _MILLIONTHS))
