"""The engine's own check of HA reservation, made exact: memory and CPU as used, by homes for all blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor

from ovirt_placement.model import Cluster, Host, Snapshot, Vm
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
from ovirt_placement.rules.elements.cpus import cores_of
from ovirt_placement.rules.failover.blocks import Combining, blocks_of
from ovirt_placement.rules.failover.outcomes import Loss, Outcome, Survival, Unknown, protected

#: Steps for the search of one set, so that one hard set does not leave all others unjudged.
SEARCH_BUDGET = 400_000


#: CPU is in millionths of a percent of a core, so that nothing is lost by rounding (HC3, HC7): a VM brings
#: its own use along, whatever the size of the host it came from.
_MILLIONTHS = 10**6


class Fitting:
    """The hosts of a cluster, in the orders in which they are tried as homes."""

    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts
        #: Most memory first: there a block fits soonest.
        self._order = sorted(hosts, key=lambda host: (-hosts[host].memory, host))
        self._position = {host: number for number, host in enumerate(self._order)}

    def without(self, failed: tuple[str, ...]) -> dict[str, Resources]:
        """What the hosts that are left can take."""
        left = dict(self.hosts)
        for host in failed:
            left.pop(host, None)
        return left

    def fit(self, failed: tuple[str, ...], blocks: Sequence[Block], left: Hosts, budget: Budget) -> Outcome:
        """Find homes on the hosts that are left. A loss is proven, and names what a greedy try left over."""
        unplaced = tuple(blocks)
        for order in self._orders(failed):
            homes, rest = first_fit(blocks, left, order)
            if homes is not None:
                return _survival(failed, blocks, homes)
            unplaced = min(unplaced, rest, key=len)
        if not proves_impossible(blocks, left):
            try:
                with budget.share(SEARCH_BUDGET) as share:
                    homes = search(blocks, left, share)
            except BudgetSpentError:
                return Unknown(failed)
            if homes is not None:
                return _survival(failed, blocks, homes)
        return Loss(failed, tuple(vm for block in unplaced for vm in block.vms))

    def _orders(self, failed: tuple[str, ...]) -> Iterator[list[str]]:
        """In which order to try hosts: first from a place of its own for each failing host.

        So hosts that fail together rarely reckon with the same homes. Then the emptiest first, then
        the fullest.
        """
        gone = frozenset(failed)
        for order in (self.order_from(failed[0]), self._order, self._order[::-1]):
            yield [host for host in order if host not in gone]

    def order_from(self, host: str) -> list[str]:
        """All hosts, beginning with the one that comes after this one, or with the first."""
        start = self._position.get(host, -1) + 1
        return self._order[start:] + self._order[:start]


def _survival(failed: tuple[str, ...], blocks: Sequence[Block], homes: Homes) -> Survival:
    return Survival(failed, {vm: home for block, home in zip(blocks, homes, strict=True) for vm in block.vms})


class Arithmetic:
    """A failure is survived if what the VMs use, and are guaranteed, fits on the other hosts."""

    separable = True

    def __init__(self, snapshot: Snapshot, cluster_id: str) -> None:
        self._snapshot = snapshot
        cluster = snapshot.cluster_by_id[cluster_id]
        up = [host for host in snapshot.hosts_of_cluster.get(cluster_id, ()) if host.up]
        self.hosts = tuple(host.id for host in up)
        self._fitting = Fitting({host.id: _room_of(host, cluster) for host in up})
        self._combining = Combining(snapshot, self._fitting.hosts, _need_of, shared=True)
        self._vms = protected(snapshot, self.hosts)

    def vms_on(self, failed: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(vm for host in failed for vm in self._vms[host])

    def combine(self, failed: tuple[str, ...], survivals: Sequence[Survival]) -> Survival | None:
        """Survive by what is known of smaller failures; None if that alone does not do."""
        found = self._combining.combine(
            failed, [one.homes for one in survivals], lambda: self._fitting.order_from(failed[0])
        )
        return None if found is None else Survival(failed, found.homes)

    def judge(self, failed: tuple[str, ...], budget: Budget) -> Outcome:
        blocks = blocks_of(self._snapshot, self.vms_on(failed), frozenset(failed), _need_of)
        return self._fitting.fit(failed, blocks, self._fitting.without(failed), budget)


def _room_of(host: Host, cluster: Cluster) -> Resources:
    """What a host can still take; one without CPU statistics can take no CPU load (as in the engine).

    Memory of pending VMs is already deducted from `free_mb` (HC4).
    """
    idle = 0.0 if host.cpu_percent is None else max(0.0, 100 - host.cpu_percent)
    return Resources(max(0, host.free_mb), round(idle * cores_of(host, cluster) * _MILLIONTHS))


def _need_of(vm: Vm) -> Resources:
    """What a VM needs elsewhere: what it uses, half a MiB rounded up, and at least what it is guaranteed."""
    used = floor(vm.memory_mb * (vm.usage_mem_percent or 0) / 100 + 0.5)
    return Resources(max(used, vm.guaranteed_mb), round((vm.usage_cpu_percent or 0) * vm.vcpus * _MILLIONTHS))
