"""One rule as a plan sees it: a constraint over the members that run, and how much it matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from ovirt_placement.rules.affinity.apart import Apart
from ovirt_placement.rules.affinity.on_hosts import OffHosts, OnHosts
from ovirt_placement.rules.affinity.together import Together
from ovirt_placement.rules.constraint import Constraint

#: The level of hard rules; soft ones follow, 1 for the highest priority in the cluster.
HARD = 0


class Shape(Enum):
    """What a constraint asks of the hosts of its VMs, as far as a plan can compute with it."""

    GATHER = auto()  # all on one host
    SPREAD = auto()  # no two on one host
    HOSTS = auto()  # each on an allowed host
    OTHER = auto()  # only the constraint itself can tell


@dataclass(frozen=True, eq=False, slots=True)
class Goal:
    """One constraint. Equal by identity: `number` is its place in `Problem.goals`."""

    number: int
    #: Trimmed to the members that run in the cluster.
    constraint: Constraint
    shape: Shape
    level: int
    #: Whether the plan is to mend it where it is broken; else it is only not to be broken.
    wanted: bool
    #: Whether it holds at the start.
    held: bool
    #: Of a hard negative group: whether fewer pairs that share a host are better, though it stays broken.
    partly: bool = False

    @property
    def vms(self) -> tuple[str, ...]:
        return self.constraint.vms

    @property
    def hard(self) -> bool:
        return self.level == HARD

    @property
    def listed(self) -> frozenset[str]:
        """The hosts that host affinity names; none for every other shape."""
        return self.constraint.hosts if isinstance(self.constraint, OnHosts) else frozenset()

    def right(self, host: str) -> bool:
        """Whether a VM under host affinity may be on `host`; true for every other shape."""
        constraint = self.constraint
        if isinstance(constraint, OffHosts):
            return host not in constraint.hosts
        return not isinstance(constraint, OnHosts) or host in constraint.hosts

    def pairs(self, crowd: Mapping[str, int]) -> int:
        """How many pairs of members share a host, if that counts; else 0."""
        return sum(count * (count - 1) // 2 for count in crowd.values()) if self.partly else 0

    def broken_by(self, crowd: Mapping[str, int]) -> bool:
        """Whether it is broken with so many running members on each host. Not for `Shape.OTHER`."""
        return self.faults(crowd) > 0

    def faults(self, crowd: Mapping[str, int]) -> int:
        """What breaks it: hosts too many, hosts with too many members, or members on wrong hosts."""
        if self.shape is Shape.GATHER:
            return len(crowd) - 1
        if self.shape is Shape.SPREAD:
            return sum(count > 1 for count in crowd.values())
        return sum(count for host, count in crowd.items() if not self.right(host))


def shape_of(constraint: Constraint) -> Shape:
    """Of a rule that is not among these, plans are found by trying, and nothing is proven."""
    if isinstance(constraint, Together):
        return Shape.GATHER
    if isinstance(constraint, Apart):
        return Shape.SPREAD
    return Shape.HOSTS if isinstance(constraint, OnHosts) else Shape.OTHER
