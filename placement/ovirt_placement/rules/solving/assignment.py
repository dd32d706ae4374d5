"""Assigns blocks to hosts under memory, CPU, restrictions and mutual exclusion, exactly.

Greedy first, since it nearly always succeeds; then proofs that nothing can; then a search of
everything that is left, within a budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush

from ovirt_placement.rules.solving.problem import Block, Budget, Hosts, Resources

#: A host for each block, in the order of the blocks.
Homes = tuple[str, ...]
#: What a host still holds, and the tags of what was put on it.
_State = tuple[Resources, frozenset[str]]


class _Filling:
    """What the hosts still hold while blocks are put on them and taken off again."""

    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts
        self.left: dict[str, Resources] = {}
        self.tags: dict[str, frozenset[str]] = {}

    def rest(self, host: str) -> Resources:
        return self.left.get(host) or self.hosts[host]

    def takes(self, block: Block, host: str) -> bool:
        return (
            self.rest(host).cover(block.need)
            and block.admits(host)
            and block.apart.isdisjoint(self.tags.get(host, ()))
        )

    def put(self, block: Block, host: str) -> None:
        self.left[host] = self.rest(host).without(block.need)
        self.tags[host] = self.tags.get(host, frozenset()) | block.apart

    def state(self, host: str) -> _State:
        return self.rest(host), self.tags.get(host, frozenset())

    def restore(self, host: str, state: _State) -> None:
        self.left[host], self.tags[host] = state


def first_fit(
    blocks: Sequence[Block], hosts: Hosts, order: Sequence[str]
) -> tuple[Homes | None, tuple[Block, ...]]:
    """Put each block, the largest first, on the first host of the order that takes it.

    Returns the homes, or None with the blocks that found none.
    """
    filling = _Filling(hosts)
    homes: dict[int, str] = {}
    for number in _largest_first(blocks):
        block = blocks[number]
        home = next((host for host in _reachable(block, order) if filling.takes(block, host)), None)
        if home is not None:
            filling.put(block, home)
            homes[number] = home
    if len(homes) == len(blocks):
        return tuple(homes[number] for number in range(len(blocks))), ()
    return None, tuple(block for number, block in enumerate(blocks) if number not in homes)


def even_fit(blocks: Sequence[Block], hosts: Hosts) -> Homes | None:
    """Put each block, the largest first, on the host that has most memory left of those that take it."""
    filling = _Filling(hosts)
    homes: dict[int, str] = {}
    roomiest = [(-room.memory, host) for host, room in hosts.items()]
    heapify(roomiest)
    for number in _largest_first(blocks):
        passed: list[tuple[int, str]] = []
        while roomiest:
            _, host = entry = heappop(roomiest)
            if filling.takes(blocks[number], host):
                filling.put(blocks[number], host)
                homes[number] = host
                entry = (-filling.rest(host).memory, host)
                passed.append(entry)
                break
            passed.append(entry)
        for entry in passed:
            heappush(roomiest, entry)
        if number not in homes:
            return None
    return tuple(homes[number] for number in range(len(blocks)))


def proves_impossible(blocks: Sequence[Block], hosts: Hosts) -> bool:
    """Whether counting alone shows that the blocks have no home: a quick test that can miss.

    For each size among the blocks, a host takes only this many blocks of at least that size.
    """
    return any(
        _too_many([_part(block.need, part) for block in blocks], [_part(one, part) for one in hosts.values()])
        for part in ("memory", "cpu")
    )


def search(blocks: Sequence[Block], hosts: Hosts, budget: Budget) -> Homes | None:
    """Find homes for all blocks, or None if there are none; every possibility counts.

    Each host looked at is a step. Raises `BudgetSpentError` if the budget ends first.
    """
    filling = _Filling(hosts)
    options = [[host for host in hosts if filling.takes(block, host)] for block in blocks]
    order = sorted(range(len(blocks)), key=lambda number: (len(options[number]), *_size(blocks[number])))
    marks = _distinctions(blocks, hosts)
    trail: list[tuple[str, _State]] = []
    choices: list[Iterator[str]] = []
    while len(trail) < len(order):
        number = order[len(trail)]
        if len(choices) == len(trail):
            budget.spend(1 + len(options[number]))
            choices.append(_different(filling, marks, blocks[number], options[number]))
        host = next(choices[-1], None)
        if host is not None:
            trail.append((host, filling.state(host)))
            filling.put(blocks[number], host)
        elif not trail:
            return None
        else:
            choices.pop()
            filling.restore(*trail.pop())
    homes = dict(zip(order, (host for host, _ in trail), strict=True))
    return tuple(homes[number] for number in range(len(blocks)))


def _different(
    filling: _Filling, marks: Mapping[str, tuple[int, ...]], block: Block, candidates: Sequence[str]
) -> Iterator[str]:
    """Hosts that take the block, one of those that are alike in all that matters, the fullest first."""
    alike = {(filling.state(host), marks[host]): host for host in candidates if filling.takes(block, host)}
    return iter(sorted(alike.values(), key=lambda host: (filling.rest(host).memory, host)))


def _distinctions(blocks: Sequence[Block], hosts: Hosts) -> dict[str, tuple[int, ...]]:
    """Which blocks each host is barred from by name: hosts that differ in nothing else are alike."""
    restricted = [
        (number, block) for number, block in enumerate(blocks) if block.allowed is not None or block.forbidden
    ]
    return {host: tuple(number for number, block in restricted if not block.admits(host)) for host in hosts}


def _too_many(needs: Sequence[int], rooms: Sequence[int]) -> bool:
    if sum(needs) > sum(rooms):
        return True
    sizes = Counter(need for need in needs if need > 0)
    at_least = 0
    for size in sorted(sizes, reverse=True):
        at_least += sizes[size]
        if at_least > sum(room // size for room in rooms if room >= size):
            return True
    return False


def _part(resources: Resources, part: str) -> int:
    return resources.memory if part == "memory" else resources.cpu


def _largest_first(blocks: Sequence[Block]) -> list[int]:
    """Restricted blocks before free ones, then by size."""
    return sorted(
        range(len(blocks)), key=lambda number: (blocks[number].allowed is None, *_size(blocks[number]))
    )


def _size(block: Block) -> tuple[int, int]:
    return -block.need.memory, -block.need.cpu


def _reachable(block: Block, order: Sequence[str]) -> Iterator[str]:
    if block.allowed is None:
        return iter(order)
    return (host for host in order if host in block.allowed)
