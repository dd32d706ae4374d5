"""Finds homes for the blocks of VMs that failed hosts leave: greedily, then by counting, then by search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ovirt_placement.rules.failover.outcomes import Loss, Outcome, Survival, Unknown
from ovirt_placement.rules.solving.assignment import Homes, first_fit, proves_impossible, search
from ovirt_placement.rules.solving.budget import Budget, BudgetSpentError
from ovirt_placement.rules.solving.problem import Block, Hosts, Resources

#: Steps for the search of one set, so that one hard set does not leave all others unjudged.
SEARCH_BUDGET = 400_000


class Fitting:
    """The hosts of a cluster, in the orders in which they are tried as homes."""

    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts
        #: Most memory first: there a block fits soonest.
        self._order = sorted(hosts, key=lambda host: (-hosts[host].memory, host))
        self._position = {host: number for number, host in enumerate(self._order)}

    def without(self, failed: tuple[str, ...]) -> dict[str, Resources]:
        """What the hosts that are left can take."""
        return {host: room for host, room in self.hosts.items() if host not in failed}

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
