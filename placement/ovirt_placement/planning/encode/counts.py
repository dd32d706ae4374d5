"""How many members of a constraint are where, and what that breaks: kept up to date move by move."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Protocol

from ovirt_placement.rules.forms import Allowed, AtMost, Form, OfAll, Same


class Count(Protocol):
    """The members of one constraint."""

    #: By host; a host without members is not in it.
    crowd: Counter[str]
    #: How many members must move at least: 0 if the constraint is satisfied.
    faults: int

    def move(self, vm: str, source: str, target: str) -> None:
        """A member has gone from one host to another."""
        ...

    def admits(self, vm: str, host: str) -> bool:
        """Whether a member of another host may come, all others staying, as the filters judge."""
        ...

    def full(self, vms: Collection[str], hosts: Iterable[str]) -> Container[str]:
        """Hosts on which these members, which are on `hosts`, would be too many besides those that stay."""
        ...


def count(form: Form | None, placed: Collection[tuple[str, str]]) -> Count | None:
    """The members where they are; None where only the constraint itself can judge what is violated."""
    if isinstance(form, Same):
        return _OnOneHost(placed)
    if form is None or isinstance(form, OfAll):
        return None
    if isinstance(form, AtMost):
        simple = not form.set_of and not form.place_of
        return _Spread(placed, form.most) if simple else _SetsApart(placed, form)
    return _OnAllowed(placed, form)


class _Crowd:
    def __init__(self, placed: Iterable[tuple[str, str]]) -> None:
        self.crowd = Counter(host for _, host in placed)
        self.faults = 0

    def _shift(self, source: str, target: str) -> None:
        self.crowd[target] += 1
        self.crowd[source] -= 1
        if not self.crowd[source]:
            del self.crowd[source]

    def full(self, vms: Collection[str], hosts: Iterable[str]) -> Container[str]:
        return ()


class _OnOneHost(_Crowd):
    def __init__(self, placed: Collection[tuple[str, str]]) -> None:
        super().__init__(placed)
        self._members = len(placed)
        self.faults = self._members - max(self.crowd.values(), default=0)

    def move(self, vm: str, source: str, target: str) -> None:
        self._shift(source, target)
        self.faults = self._members - max(self.crowd.values())

    def admits(self, vm: str, host: str) -> bool:
        return self._members == 1 or host in self.crowd


class _Spread(_Crowd):
    """Each VM is a set by itself, and each host a place."""

    def __init__(self, placed: Collection[tuple[str, str]], most: int) -> None:
        super().__init__(placed)
        self._most = most
        self.faults = sum(max(0, members - most) for members in self.crowd.values())

    def move(self, vm: str, source: str, target: str) -> None:
        self._shift(source, target)
        most = self._most
        self.faults += (self.crowd[target] > most) - (self.crowd.get(source, 0) >= most)

    def admits(self, vm: str, host: str) -> bool:
        return self.crowd.get(host, 0) < self._most

    def full(self, vms: Collection[str], hosts: Iterable[str]) -> Container[str]:
        return _Full(self.crowd, Counter(hosts), max(0, self._most - len(vms)))


@dataclass(frozen=True, slots=True)
class _Full:
    """Hosts that keep more members than this many, once some have left."""

    crowd: Mapping[str, int]
    leaving: Mapping[str, int]
    most: int

    def __contains__(self, host: object) -> bool:
        name = str(host)
        return self.crowd.get(name, 0) - self.leaving.get(name, 0) > self.most


class _SetsApart(_Crowd):
    """Sets of VMs, or failure domains."""

    def __init__(self, placed: Collection[tuple[str, str]], limit: AtMost) -> None:
        super().__init__(placed)
        self._limit = limit
        self._sets: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for vm, host in placed:
            self._sets[limit.place(host)][limit.own_set(vm)] += 1
        self.faults = sum(map(self._excess, self._sets.values()))

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

    def admits(self, vm: str, host: str) -> bool:
        limit, own = self._limit, self._limit.own_set(vm)
        there = self._sets.get(limit.place(host), ())
        return len(there) - (own in there) < limit.most

    def full(self, vms: Collection[str], hosts: Iterable[str]) -> Container[str]:
        limit, own = self._limit, self._limit.sets(vms)
        found = {place for place, sets in self._sets.items() if len(own.union(sets)) > limit.most}
        return _FullPlaces(limit, found)


@dataclass(frozen=True, slots=True)
class _FullPlaces:
    limit: AtMost
    places: Set[str]

    def __contains__(self, host: object) -> bool:
        return self.limit.place(str(host)) in self.places


class _OnAllowed(_Crowd):
    def __init__(self, placed: Collection[tuple[str, str]], allowed: Allowed) -> None:
        super().__init__(placed)
        self._right = allowed.right
        self.faults = sum(not allowed.right(host) for _, host in placed)

    def move(self, vm: str, source: str, target: str) -> None:
        self._shift(source, target)
        self.faults += self._right(source) - self._right(target)

    def admits(self, vm: str, host: str) -> bool:
        return self._right(host)
