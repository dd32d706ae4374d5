"""How many members of a constraint are where, and what that breaks: kept up to date move by move.

A move costs as much as there are hosts or failure domains at most, however many members a constraint has.
"""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from copy import copy
from typing import Self

from ovirt_placement.rules.elements.rule import Allowed, AtLeast, AtMost, Even, Form, OnePlace, Same, Sum


class Crowd(ABC):
    """The members of one constraint by host; a host without members is not in it."""

    #: How far the constraint is from being satisfied, as `Constraint.excess` counts it: 0 if it is.
    faults: int

    def __init__(self, placed: Iterable[tuple[str, str]]) -> None:
        self.crowd = Counter(host for _, host in placed)

    def copied(self) -> Self:
        """The same, which other moves may change."""
        other = copy(self)
        other.crowd = self.crowd.copy()
        return other

    @property
    def pairs(self) -> int:
        """How many pairs of members share a host."""
        return sum(members * (members - 1) // 2 for members in self.crowd.values())

    @abstractmethod
    def move(self, vm: str, source: str, target: str) -> None:
        """A member has gone from one host to another."""

    @abstractmethod
    def admits(self, vm: str, source: str, host: str) -> bool:
        """Whether a member may come from another host, all others staying, as the filters judge."""

    def full(self, vms: Collection[str], hosts: Iterable[str]) -> Container[str]:
        """Hosts on which these members, which are on `hosts`, would be too many besides those that stay."""
        return ()

    def _shift(self, source: str, target: str) -> None:
        self.crowd[target] += 1
        self.crowd[source] -= 1
        if not self.crowd[source]:
            del self.crowd[source]


class _Apart(Crowd):
    def __init__(self, placed: Collection[tuple[str, str]], limit: AtMost) -> None:
        super().__init__(placed)
        self._limit = limit
        self._sets: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for vm, host in placed:
            self._sets[limit.place(host)][limit.own_set(vm)] += 1
        self.faults = sum(map(self._excess, self._sets.values()))

    def copied(self) -> Self:
        other = super().copied()
        other._sets = defaultdict(Counter, {place: sets.copy() for place, sets in self._sets.items()})
        return other

    def move(self, vm: str, source: str, target: str) -> None:
        self._shift(source, target)
        limit, own = self._limit, self._limit.own_set(vm)
        left, joined = self._sets[limit.place(source)], self._sets[limit.place(target)]
        if left is joined:
            return
        self.faults -= self._excess(left) + self._excess(joined)
        joined[own] += 1
        left[own] -= 1
        if not left[own]:
            del left[own]
        self.faults += self._excess(left) + self._excess(joined)

    def _excess(self, sets: Mapping[str, int]) -> int:
        return self._limit.excess(sets.values()) if len(sets) > self._limit.most else 0

    def admits(self, vm: str, source: str, host: str) -> bool:
        limit, own = self._limit, self._limit.own_set(vm)
        there = self._sets.get(limit.place(host), ())
        return len(there) - (own in there) < limit.most

    def full(self, vms: Collection[str], hosts: Iterable[str]) -> Container[str]:
        limit, own = self._limit, self._limit.sets(vms)
        found = {place for place, sets in self._sets.items() if len(own.union(sets)) > limit.most}
        return found.union(host for host, place in limit.place_of.items() if place in found)


class _OnAllowed(Crowd):
    def __init__(self, placed: Collection[tuple[str, str]], allowed: Allowed) -> None:
        super().__init__(placed)
        self._allows = allowed.allows
        self.faults = sum(not allowed.allows(host) for _, host in placed)

    def move(self, vm: str, source: str, target: str) -> None:
        self._shift(source, target)
        self.faults += self._allows(source) - self._allows(target)

    def admits(self, vm: str, source: str, host: str) -> bool:
        return self._allows(host)


class InSum:
    """What counts of the members on some hosts; of moves between others it need not know."""

    def __init__(self, placed: Collection[tuple[str, str]], form: Sum) -> None:
        self._hosts, self._most, self._amounts = form.hosts, form.most, form.amounts
        #: What counts of those on the hosts.
        self.there = sum(form.amounts[vm] for vm, host in placed if host in form.hosts)
        self.faults = max(0, self.there - self._most)

    def copied(self) -> Self:
        return copy(self)

    def move(self, vm: str, source: str, target: str) -> None:
        self.there += ((target in self._hosts) - (source in self._hosts)) * self._amounts[vm]
        self.faults = max(0, self.there - self._most)

    def admits(self, vm: str, source: str, host: str) -> bool:
        enters = host in self._hosts and source not in self._hosts
        return not enters or self.there + self._amounts[vm] <= self._most

    def full(self, vms: Collection[str], hosts: Iterable[str]) -> Container[str]:
        coming = sum(
            self._amounts[vm] for vm, host in zip(vms, hosts, strict=True) if host not in self._hosts
        )
        return self._hosts if self.there + coming > self._most else ()


class _ByPlace(Crowd):
    """Members by place, as a failure domain; hosts in none have None."""

    _form: OnePlace | Even | AtLeast

    def __init__(
        self,
        placed: Collection[tuple[str, str]],
        form: OnePlace | Even | AtLeast,
        place: Callable[[str], str | None] | None = None,
    ) -> None:
        super().__init__(placed)
        self._form = form
        self._place = place or form.place_of.get
        self._there = Counter(self._place(host) for _, host in placed)
        self.faults = form.excess(self._there)

    def copied(self) -> Self:
        other = super().copied()
        other._there = self._there.copy()
        return other

    def move(self, vm: str, source: str, target: str) -> None:
        self._shift(source, target)
        left, joined = self._place(source), self._place(target)
        if left != joined:
            self._there[joined] += 1
            self._there[left] -= 1
            if not self._there[left]:
                del self._there[left]
            self.faults = self._form.excess(self._there)

    def _others(self, source: str) -> Counter[str | None]:
        """Without a member that is on a host."""
        others = self._there.copy()
        others[self._place(source)] -= 1
        return +others


class _InOnePlace(_ByPlace):
    def admits(self, vm: str, source: str, host: str) -> bool:
        place = self._place(host)
        if place is None or place in self._there:
            return place is not None
        return all(one is None for one in self._others(source))


class _InPlaces(_ByPlace):
    _form: AtLeast

    def admits(self, vm: str, source: str, host: str) -> bool:
        place, others = self._place(host), self._others(source)
        if place is not None and (place == self._place(source) or place not in others):
            return True
        return len(others) - (None in others) >= min(self._form.least, self._there.total())


class _Even(_ByPlace):
    _form: Even

    def admits(self, vm: str, source: str, host: str) -> bool:
        place = self._place(host)
        if place is None or place == self._place(source) or place not in self._form.eligible:
            return place is not None
        most, others = self._form.max_skew, self._others(source)
        before = max(self._there[one] for one in self._form.eligible) - self._lowest(self._there)
        others[place] += 1
        lowest = self._lowest(others)
        highest = max(others[one] for one in self._form.eligible)
        return others[place] - lowest <= most and highest - lowest <= max(most, before)

    def _lowest(self, there: Counter[str | None]) -> int:
        return 0 if self._form.from_nothing else min(there[one] for one in self._form.eligible)


Count = Crowd | InSum


def count(form: Form | None, placed: Collection[tuple[str, str]]) -> Count | None:
    """The members where they are; None where only the constraint itself can judge what is violated."""
    match form:
        case Same():
            return _InOnePlace(placed, OnePlace({}), str)
        case AtMost():
            return _Apart(placed, form)
        case Allowed():
            return _OnAllowed(placed, form)
        case Sum():
            return InSum(placed, form)
        case OnePlace():
            return _InOnePlace(placed, form)
        case Even():
            return _Even(placed, form)
        case AtLeast():
            return _InPlaces(placed, form)
        case None:
            return None
