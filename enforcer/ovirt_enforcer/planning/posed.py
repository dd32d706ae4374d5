"""What the planner has to solve in one cluster: who runs where, who may go where, and which rules must hold.

A snapshot boiled down to what a search needs. Whatever a filter says that does not depend on where other VMs
are is asked beforehand; what does is held by the constraints that rules declare, and by the room on hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ovirt_placement.rules.affinity.together import Together
from ovirt_placement.rules.constraint import Constraint
from ovirt_placement.rules.solving.matching import most_served


@dataclass(frozen=True)
class Group:
    """One constraint to mend, with those of its members that run."""

    constraint: Constraint
    vms: frozenset[str]

    @property
    def ids(self) -> tuple[str, ...]:
        return self.constraint.groups

    @property
    def gathers(self) -> bool:
        """Whether it asks for one host for all; else its members are to spread, and each that moves helps."""
        return isinstance(self.constraint, Together)

    def __hash__(self) -> int:
        return hash(self.ids)


@dataclass(frozen=True, slots=True)
class Move:
    """A migration of one VM, or of a whole positive group at once (its closure), to `host`."""

    vms: tuple[str, ...]
    host: str


@dataclass(frozen=True)
class Problem:
    """The start of a search. VMs that may not move are in `where` and have no `allowed` hosts."""

    #: Hosts that may take VMs, the best first; the order decides between plans that are equally short.
    hosts: tuple[str, ...]
    #: MiB that each of `hosts` can still hand out.
    free_mb: Mapping[str, int]
    memory_mb: Mapping[str, int]
    where: Mapping[str, str]
    #: Hosts that a VM is on its way to.
    pending: Mapping[str, tuple[str, ...]]
    #: Hosts that a VM may run on, as far as capacity and other VMs let it.
    allowed: Mapping[str, frozenset[str]]
    #: Constraints to mend, with at least two running members each.
    mended: tuple[Group, ...]
    #: Of each VM, all hard constraints that hold it.
    constraints: Mapping[str, tuple[Constraint, ...]]
    #: Of each VM, those that share a hard positive group with it: what the engine's own filter looks at.
    peers: Mapping[str, frozenset[str]]
    #: Of each VM, those that hard positive groups tie to it through any number of VMs.
    all_peers: Mapping[str, frozenset[str]]
    #: Of each VM, those that share a hard negative group with it.
    rivals: Mapping[str, frozenset[str]]
    #: Whether a filter was asked beforehand that other VMs may sway: then nothing is proven to be impossible.
    guessed: bool = False

    @cached_property
    def movable(self) -> tuple[str, ...]:
        """VMs that may move at all, the cheapest to migrate first."""
        vms = (vm for vm, hosts in self.allowed.items() if hosts)
        return tuple(sorted(vms, key=lambda vm: (self.memory_mb[vm], vm)))

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """All groups in the order in which they are mended: gathering before spreading, large before small.

        Of equal ones, the group whose smallest VM id is larger goes first, as in the engine.
        """
        groups = sorted(self.mended, key=lambda group: group.ids)
        groups.sort(key=lambda group: min(group.vms), reverse=True)
        groups.sort(key=lambda group: (not group.gathers, -len(group.vms)))
        return tuple(groups)

    @cached_property
    def gathering_hosts(self) -> dict[Group, tuple[str, ...]]:
        """Hosts where a positive group could be whole, as far as its members may go or already are there."""
        return {
            group: tuple(
                host
                for host in sorted({*self.hosts, *(self.where[vm] for vm in group.vms)})
                if all(self.where[vm] == host or host in self.allowed[vm] for vm in group.vms)
            )
            for group in self.mended
            if group.gathers
        }

    @cached_property
    def least_surplus(self) -> dict[Group, int]:
        """Members of each spreading group that must stand wrong, wherever they go: a lower bound."""
        return {group: self._least(group) for group in self.mended if not group.gathers}

    def _least(self, group: Group) -> int:
        """Only of VMs that each need a host of their own something is known beforehand."""
        if not all(self.rivals[vm] >= group.vms - {vm} for vm in group.vms):
            return 0
        alone = len(group.vms) - most_served([{self.where[vm], *self.allowed[vm]} for vm in group.vms])
        return max(alone, self._tied(group))

    def _tied(self, group: Group) -> int:
        """Members that a positive group, whole as it is, holds on one host; no legal move splits it."""
        return sum(
            max(0, len(group.vms & other.vms) - 1)
            for other in self.mended
            if other.gathers and len({self.where[vm] for vm in other.vms}) == 1
        )
