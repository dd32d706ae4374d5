"""What a rule asks of where VMs run: an invariant that can be checked (BtrPlace calls it a constraint).

A rule's file states its invariant and says of any placement whether it is satisfied. Violations, the
legality of planned migrations and the tests all ask this one checker. By `Constraint.form` it says which of
the few forms it is that every part of the planner can compute with: the planner knows forms and no rules.
What fits none of them is planned by asking the constraint alone.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from ovirt_placement.model.record import Record
from ovirt_placement.rules.elements.placement import Placement


class Same(Record, frozen=True):
    """All VMs on one host."""


class AtMost(Record, frozen=True):
    """On each place VMs of at most this many sets.

    Without sets each VM is one of its own; with two sets and a limit of 1 no VM of one set shares a place
    with a VM of the other.
    """

    most: int
    #: The set of each VM; one that is not named is a set by itself.
    set_of: Mapping[str, str] = {}
    #: The failure domain of each host; one that is not named is a place by itself.
    place_of: Mapping[str, str] = {}

    def own_set(self, vm: str) -> str:
        return self.set_of.get(vm, vm)

    def place(self, host: str) -> str:
        return self.place_of.get(host, host)

    def sets(self, vms: Iterable[str]) -> set[str]:
        """The sets of some VMs."""
        return {self.set_of.get(vm, vm) for vm in vms}

    def excess(self, sizes: Iterable[int]) -> int:
        """How many VMs must leave a place with sets of these sizes: those of the smallest sets."""
        ordered = sorted(sizes, reverse=True)
        return sum(ordered[self.most :])


class Allowed(Record, frozen=True):
    """Each VM on some hosts only, or on all but some."""

    hosts: frozenset[str]
    #: Whether `hosts` are those that it may be on, or those that it may not.
    positive: bool = True

    def right(self, host: str) -> bool:
        return (host in self.hosts) is self.positive


class OnePlace(Record, frozen=True):
    """All VMs in one place, on any of its hosts; a host that is in none is wrong."""

    place_of: Mapping[str, str]

    def takes_whole(self, host: str, others: Iterable[str]) -> bool:
        """Whether VMs may come to a host at once that are all but those on other hosts."""
        places = {self.place_of[one] for one in others if one in self.place_of}
        place = self.place_of.get(host)
        return place is not None and (not places or place in places)


class Even(Record, frozen=True):
    """Eligible places differ by `max_skew` VMs at most; a host that is in no place is wrong."""

    max_skew: int
    place_of: Mapping[str, str]
    eligible: frozenset[str]
    #: Whether the emptiest counts as empty.
    from_nothing: bool = False


class AtLeast(Record, frozen=True):
    """VMs in `least` places, or each in its own while fewer run."""

    least: int
    place_of: Mapping[str, str]


class Sum(Record, frozen=True):
    """What counts of VMs on these hosts is at most so much in sum."""

    hosts: frozenset[str]
    most: int
    amounts: Mapping[str, int]


#: Forms that models compute with; how VMs come there step by step, only the constraint itself can judge.
OfAll = OnePlace | Even | AtLeast | Sum
Form = Same | AtMost | Allowed | OfAll


def off_gathering(place_of: Mapping[str, str | None]) -> tuple[str, ...]:
    """The VMs off the place that most share; of places with as many, the first by name gathers them."""
    crowds = Counter(place for place in place_of.values() if place is not None)
    gathering = min(crowds, key=lambda place: (-crowds[place], place), default=None)
    return tuple(vm for vm, place in place_of.items() if place is None or place != gathering)


class Constraint(Record, frozen=True, kw_only=True):
    """An invariant over some VMs of one cluster; a subclass says which."""

    #: Which half of an affinity group asks for it: `vm_affinity` or `host_affinity`.
    family: ClassVar[str]
    #: What it asks of its VMs, in words: "together", "apart", "on its hosts" ...
    asks: ClassVar[str]
    #: Whether it draws VMs to something; else it keeps them off something.
    positive: ClassVar[bool]
    #: Whether the engine's own filters judge it as well: they refuse what `admits` refuses, however
    #: violated it is already.
    engine_judges: ClassVar[bool] = True

    #: Ids of the affinity groups that ask for it, or of a legacy label.
    groups: tuple[str, ...]
    #: All members, whether or not they run.
    vms: tuple[str, ...]
    #: Hard rules must be satisfied; soft ones should, the more so the higher the priority.
    hard: bool
    priority: float

    @property
    def form(self) -> Form | None:
        """What it asks of its VMs as a planner computes with it; None where only this checker can judge."""
        return None

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """Members that violate it; none if the invariant is satisfied."""
        raise NotImplementedError

    @property
    def binding(self) -> bool:
        """Whether no migration may violate it, or violate it more."""
        return self.hard

    def surplus(self, placement: Placement) -> int:
        """How many members must move at least to satisfy it, with room everywhere; 0 if it is."""
        return len(self.offenders(placement))

    def excess(self, placement: Placement) -> int:
        """How far it is from being satisfied, in VMs unless it counts something else; 0 if it is."""
        return self.surplus(placement)

    def admits(self, vm: str, host: str, placement: Placement) -> bool:
        """Whether a member may come to a host while all others stay where they are.

        It may join a split positive group on any of its hosts, though that repairs nothing.
        """
        raise NotImplementedError

    def lets(self, vm: str, host: str, placement: Placement) -> bool:
        """Whether a member that runs may migrate to a host.

        Where we alone judge, a step is judged by what it makes worse: it may come to where it stands wrong
        as well, if the rule is violated already and `excess` does not grow.
        """
        return self.admits(vm, host, placement)

    def keeps(self, placement: Placement) -> bool:
        """Whether the invariant is satisfied."""
        return not self.offenders(placement)

    def violated_groups(self, placement: Placement) -> tuple[str, ...]:
        """Of `groups`, those that are violated taken alone."""
        return self.groups if self.offenders(placement) else ()

    def as_engine_lists(self) -> tuple[str, ...]:
        """All members in the order in which the engine goes through them."""
        return self.vms

    def running(self, placement: Placement) -> Iterator[tuple[str, str]]:
        """Members that run, each with its host."""
        for vm in self.vms:
            host = placement.runs_on(vm)
            if host is not None:
                yield vm, host
