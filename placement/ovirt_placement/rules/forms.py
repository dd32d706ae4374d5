"""What a constraint asks, in the few forms that every part of the planner can compute with.

A rule says by `Constraint.form` which one it is; the planner knows forms and no rules. What fits none of
them is planned by asking the constraint alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ovirt_placement.model.record import Record


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
