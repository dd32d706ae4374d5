"""Assigns loads to hosts under memory, CPU, restrictions and mutual exclusion, exactly.

Greedy first, since it nearly always succeeds; then proofs that nothing can; then a search of
everything that is left, within a budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ovirt_placement.rules.solving.budget import Budget
from ovirt_placement.rules.verdict import Struct


class Capacity(Struct, frozen=True):
    """What a host can take, or a load needs: MiB of memory, and CPU in any unit that both share."""

    memory: int
    cpu: int

    def holds(self, load: Capacity) -> bool:
        return load.memory <= self.memory and load.cpu <= self.cpu

    def without(self, load: Capacity) -> Capacity:
        return Capacity(self.memory - load.memory, self.cpu - load.cpu)


class Load(Struct, frozen=True):
    """VMs that go to one host together."""

    vms: tuple[str, ...]
    need: Capacity
    #: Hosts that it is restricted to; None for no restriction.
    allowed: frozenset[str] | None
    forbidden: frozenset[str]
    #: Loads that share one of these tags cannot share a host.
    apart: frozenset[str]

    def admits(self, host: str) -> bool:
        return (self.allowed is None or host in self.allowed) and host not in self.forbidden


#: A host for each load, in the order of the loads.
Homes = tuple[str, ...]
#: What a host still holds, and the tags of what was put on it.
_State = tuple[Capacity, frozenset[str]]


class _Filling:
    """What the hosts still hold while loads are put on them and taken off again."""

    def __init__(self, hosts: Mapping[str, Capacity]) -> None:
        self.hosts = hosts
        self.left: dict[str, Capacity] = {}
        self.tags: dict[str, frozenset[str]] = {}

    def rest(self, host: str) -> Capacity:
        return self.left.get(host) or self.hosts[host]

    def takes(self, load: Load, host: str) -> bool:
        return (
            self.rest(host).holds(load.need)
            and load.admits(host)
            and load.apart.isdisjoint(self.tags.get(host, ()))
        )

    def put(self, load: Load, host: str) -> None:
        self.left[host] = self.rest(host).without(load.need)
        self.tags[host] = self.tags.get(host, frozenset()) | load.apart

    def state(self, host: str) -> _State:
        return self.rest(host), self.tags.get(host, frozenset())

    def restore(self, host: str, state: _State) -> None:
        self.left[host], self.tags[host] = state


def first_fit(
    loads: Sequence[Load], hosts: Mapping[str, Capacity], order: Sequence[str]
) -> tuple[Homes | None, tuple[Load, ...]]:
    """Put each load, the largest first, on the first host of the order that takes it.

    Returns the homes, or None with the loads that found none.
    """
    filling = _Filling(hosts)
    homes: dict[int, str] = {}
    for number in _largest_first(loads):
        load = loads[number]
        home = next((host for host in _reachable(load, order) if filling.takes(load, host)), None)
        if home is not None:
            filling.put(load, home)
            homes[number] = home
    if len(homes) == len(loads):
        return tuple(homes[number] for number in range(len(loads))), ()
    return None, tuple(load for number, load in enumerate(loads) if number not in homes)


def proves_impossible(loads: Sequence[Load], hosts: Mapping[str, Capacity]) -> bool:
    """Whether counting alone shows that the loads have no home: a quick test that can miss.

    For each size among the loads, a host takes only so many loads of at least that size.
    """
    return any(
        _too_many([_part(load.need, part) for load in loads], [_part(one, part) for one in hosts.values()])
        for part in ("memory", "cpu")
    )


def search(loads: Sequence[Load], hosts: Mapping[str, Capacity], budget: Budget) -> Homes | None:
    """Find homes for all loads, or None if there are none; every possibility counts.

    Each host looked at is a step. Raises `BudgetSpentError` if the budget ends first.
    """
    filling = _Filling(hosts)
    options = [[host for host in hosts if filling.takes(load, host)] for load in loads]
    order = sorted(range(len(loads)), key=lambda number: (len(options[number]), *_size(loads[number])))
    marks = _distinctions(loads, hosts)
    trail: list[tuple[str, _State]] = []
    choices: list[Iterator[str]] = []
    while len(trail) < len(order):
        number = order[len(trail)]
        if len(choices) == len(trail):
            budget.spend(1 + len(options[number]))
            choices.append(_different(filling, marks, loads[number], options[number]))
        host = next(choices[-1], None)
        if host is not None:
            trail.append((host, filling.state(host)))
            filling.put(loads[number], host)
        elif not trail:
            return None
        else:
            choices.pop()
            filling.restore(*trail.pop())
    homes = dict(zip(order, (host for host, _ in trail), strict=True))
    return tuple(homes[number] for number in range(len(loads)))


def _different(
    filling: _Filling, marks: Mapping[str, tuple[int, ...]], load: Load, candidates: Sequence[str]
) -> Iterator[str]:
    """Hosts that take the load, one of those that are alike in all that matters, the fullest first."""
    alike = {(filling.state(host), marks[host]): host for host in candidates if filling.takes(load, host)}
    return iter(sorted(alike.values(), key=lambda host: (filling.rest(host).memory, host)))


def _distinctions(loads: Sequence[Load], hosts: Mapping[str, Capacity]) -> dict[str, tuple[int, ...]]:
    """Which loads each host is barred from by name: hosts that differ in nothing else are alike."""
    restricted = [
        (number, load) for number, load in enumerate(loads) if load.allowed is not None or load.forbidden
    ]
    return {host: tuple(number for number, load in restricted if not load.admits(host)) for host in hosts}


def _too_many(needs: Sequence[int], capacities: Sequence[int]) -> bool:
    if sum(needs) > sum(capacities):
        return True
    sizes = Counter(need for need in needs if need > 0)
    at_least = 0
    for size in sorted(sizes, reverse=True):
        at_least += sizes[size]
        if at_least > sum(capacity // size for capacity in capacities if capacity >= size):
            return True
    return False


def _part(capacity: Capacity, part: str) -> int:
    return capacity.memory if part == "memory" else capacity.cpu


def _largest_first(loads: Sequence[Load]) -> list[int]:
    """Restricted loads before free ones, then by size."""
    return sorted(
        range(len(loads)), key=lambda number: (loads[number].allowed is None, *_size(loads[number]))
    )


def _size(load: Load) -> tuple[int, int]:
    return -load.need.memory, -load.need.cpu


def _reachable(load: Load, order: Sequence[str]) -> Iterator[str]:
    if load.allowed is None:
        return iter(order)
    return (host for host in order if host in load.allowed)
