"""Whether the highly available VMs of a cluster survive the failure of any few hosts, exactly.

"Unsafe" means that no assignment exists under memory, CPU, hard affinity and pinning; "safe" comes
with one. Sets of hosts that fail at once are judged one by one, the small ones first, and a set that
contains an unsafe one is not looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import comb

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.ha.demand import blocks_of, room_of
from ovirt_placement.rules.record import Record
from ovirt_placement.rules.solving.assignment import Homes, first_fit, proves_impossible, search
from ovirt_placement.rules.solving.budget import Budget, BudgetSpentError
from ovirt_placement.rules.solving.problem import Block, Hosts

#: Steps for a whole check: a set of failing hosts costs one, and one for each VM to place.
DEFAULT_BUDGET = 4_000_000
#: Steps for the search of one set, so that one hard set does not leave all others unjudged.
SEARCH_BUDGET = 400_000


class Survival(Record, frozen=True):
    """Hosts that may fail together, and where each highly available VM on them would restart."""

    hosts: tuple[str, ...]
    homes: dict[str, str]


class Loss(Record, frozen=True):
    """Hosts that must not fail together, and VMs that a best effort leaves without a home."""

    hosts: tuple[str, ...]
    homeless: tuple[str, ...]


class Unknown(Record, frozen=True):
    """Hosts for which the work budget ended before an answer."""

    hosts: tuple[str, ...]


Outcome = Survival | Loss | Unknown


class HaCheck(Record, frozen=True):
    """What is proven about the failure of up to `failures` hosts of a cluster at once."""

    cluster: str
    failures: int
    #: Whether every such failure is survived; None if that is not known.
    safe: bool | None
    #: The smallest sets of hosts whose failure is not survived.
    losses: tuple[Loss, ...]
    #: Sets that were too hard.
    unknown: tuple[Unknown, ...]
    #: How many sets are proven to be survived.
    survived: int
    #: How many sets the budget left unjudged, the largest ones.
    unjudged: int
    #: Where everything goes when one host fails, for each host whose failure is survived.
    survivals: tuple[Survival, ...]


def check(
    snapshot: Snapshot, cluster_id: str, failures: int | None = None, steps: int = DEFAULT_BUDGET
) -> HaCheck:
    """Judge every set of at most `failures` hosts (the cluster's own figure by default).

    Only hosts that are up count, as failing ones and as homes; a dedicated failover host is a home
    as any other. What the budget leaves open is counted, never guessed.
    """
    failures = snapshot.cluster_by_id[cluster_id].ha_failures if failures is None else failures
    cluster = FailingCluster(snapshot, cluster_id)
    found = _Findings()
    budget = Budget(steps)
    unjudged = sum(comb(len(cluster.hosts), size) for size in range(1, failures + 1))
    try:
        for failed in cluster.sets_of_hosts(failures):
            budget.spend(1 + len(cluster.vms_on(failed)))
            if not found.contains_loss(failed):
                found.add(
                    failed, cluster.survive_apart(failed, found.single) or cluster.judge(failed, budget)
                )
            unjudged -= 1
    except BudgetSpentError:
        pass
    return HaCheck(
        cluster=cluster_id,
        failures=failures,
        safe=False if found.losses else None if found.unknown or unjudged else True,
        losses=tuple(found.losses),
        unknown=tuple(found.unknown),
        survived=found.survived,
        unjudged=unjudged,
        survivals=tuple(found.single.values()),
    )


class _Findings:
    """What a check has found so far."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self.unknown: list[Unknown] = []
        self.single: dict[str, Survival] = {}
        self.survived = 0
        self._lost: set[tuple[str, ...]] = set()

    def contains_loss(self, failed: tuple[str, ...]) -> bool:
        """Whether a smaller set, or the set itself, is lost already."""
        sizes = range(1, len(failed) + 1)
        return any(smaller in self._lost for size in sizes for smaller in combinations(failed, size))

    def add(self, failed: tuple[str, ...], outcome: Outcome) -> None:
        if isinstance(outcome, Loss):
            self.losses.append(outcome)
            self._lost.add(failed)
        elif isinstance(outcome, Unknown):
            self.unknown.append(outcome)
        else:
            self.survived += 1
            if len(failed) == 1:
                self.single[failed[0]] = outcome


class FailingCluster:
    """What all failures of one cluster have in common."""

    def __init__(self, snapshot: Snapshot, cluster_id: str) -> None:
        self.snapshot = snapshot
        cluster = snapshot.cluster_by_id[cluster_id]
        up = [host for host in snapshot.hosts_of_cluster.get(cluster_id, ()) if host.up]
        self.hosts: Hosts = {host.id: room_of(host, cluster) for host in up}
        self.ha_vms = {
            host.id: tuple(vm.id for vm in snapshot.vms_of_host.get(host.id, ()) if vm.ha) for host in up
        }
        #: Most memory first: there a block fits soonest.
        self.order = sorted(self.hosts, key=lambda host: (-self.hosts[host].memory, host))
        self.position = {host: number for number, host in enumerate(self.order)}

    def sets_of_hosts(self, failures: int) -> Iterator[tuple[str, ...]]:
        """Sets of failing hosts, the small ones first.

        A host without highly available VMs matters too when it fails with others: it is a home.
        """
        for size in range(1, failures + 1):
            yield from combinations(self.hosts, size)

    def vms_on(self, hosts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(vm for host in hosts for vm in self.ha_vms.get(host, ()))

    def survive_apart(self, failed: tuple[str, ...], single: Mapping[str, Survival]) -> Survival | None:
        """A survival put together from those of each host alone, if they do not get in each other's way.

        They do not if each has homes off the other failing hosts and no two use the same home. Affinity
        does not matter then: what gathers a VM at its home survives, since the home does; failing hosts
        hold no negative peers any more; and VMs on different homes are apart.
        """
        if len(failed) == 1 or not all(host in single for host in failed):
            return None
        alone = [single[host].homes for host in failed]
        used = [set(homes.values()) for homes in alone]
        distinct = len(set().union(*used)) == sum(map(len, used))
        if not distinct or any(not homes.isdisjoint(failed) for homes in used):
            return None
        return Survival(failed, {vm: home for homes in alone for vm, home in homes.items()})

    def judge(self, failed: tuple[str, ...], budget: Budget) -> Outcome:
        """Judge one failure: greedily, then by counting, then by search."""
        blocks = blocks_of(self.snapshot, self.vms_on(failed), frozenset(failed))
        left = {host: room for host, room in self.hosts.items() if host not in failed}
        homeless: tuple[Block, ...] = blocks
        for order in self._orders(failed, left):
            homes, rest = first_fit(blocks, left, order)
            if homes is not None:
                return _survival(failed, blocks, homes)
            homeless = min(homeless, rest, key=len)
        if not proves_impossible(blocks, left):
            try:
                with budget.share(SEARCH_BUDGET) as share:
                    homes = search(blocks, left, share)
            except BudgetSpentError:
                return Unknown(failed)
            if homes is not None:
                return _survival(failed, blocks, homes)
        return Loss(failed, tuple(vm for block in homeless for vm in block.vms))

    def _orders(self, failed: tuple[str, ...], left: Hosts) -> Iterator[list[str]]:
        """In which order to try hosts: first from a place of its own for each failing host.

        So hosts that fail together rarely reckon with the same homes. Then the emptiest first, then
        the fullest.
        """
        start = self.position.get(failed[0], -1) + 1
        for order in (self.order[start:] + self.order[:start], self.order, self.order[::-1]):
            yield [host for host in order if host in left]


def _survival(failed: tuple[str, ...], blocks: tuple[Block, ...], homes: Homes) -> Survival:
    return Survival(failed, {vm: home for block, home in zip(blocks, homes, strict=True) for vm in block.vms})
