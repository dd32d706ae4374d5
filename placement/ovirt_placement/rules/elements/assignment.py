"""VMs on hosts as one problem: blocks, their exact assignment, and the bound of the work on it.

Blocks go to hosts under memory, CPU, restrictions and mutual exclusion. Greedy first, since that nearly
always succeeds; then proofs that nothing can; then a search of everything that is left, within a budget.

One host for each VM and none for two: whether all VMs can be served, and how many can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from heapq import heapify, heappop, heappush

from ovirt_placement.model.record import Record
from ovirt_placement.model.snapshot import grouped


class BudgetSpentError(Exception):
    """The work allowed is done and the question still open."""


class Budget:
    """Steps that a search may still take; shared by all searches that answer one question."""

    def __init__(self, steps: int) -> None:
        #: Steps that are left; below 0 where more was asked for than there was.
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Raises `BudgetSpentError` when nothing is left."""
        self.left -= steps
        if self.left < 0:
            raise BudgetSpentError

    @contextmanager
    def share(self, steps: int) -> Iterator[Budget]:
        """At most this many steps for one search among many; what it leaves comes back."""
        share = Budget(min(steps, self.left))
        self.left -= share.left
        try:
            yield share
        finally:
            self.left += max(0, share.left)


class Resources(Record, frozen=True):
    """What a host can take, or VMs need: MiB of memory, and CPU in any unit that both share."""

    memory: int = 0
    cpu: int = 0

    def cover(self, need: Resources) -> bool:
        return need.memory <= self.memory and need.cpu <= self.cpu

    def without(self, need: Resources) -> Resources:
        return Resources(self.memory - need.memory, self.cpu - need.cpu)


NOTHING = Resources()
#: What each host can take, by its id.
Hosts = Mapping[str, Resources]


class Block(Record, frozen=True):
    """VMs that go to one host together, whichever."""

    vms: tuple[str, ...]
    need: Resources = NOTHING
    #: Hosts that it is restricted to; None for no restriction.
    allowed: frozenset[str] | None = None
    forbidden: frozenset[str] = frozenset()
    #: Blocks that share one of these tags cannot share a host.
    apart: frozenset[str] = frozenset()

    def admits(self, host: str) -> bool:
        """Whether the host is one that it may go to, whatever room there is."""
        return (self.allowed is None or host in self.allowed) and host not in self.forbidden

    def narrowed(self, only: frozenset[str] | None, never: frozenset[str]) -> Block:
        """The same with further hosts left out: all but `only`, if that is given, and `never`."""
        allowed = self.allowed if only is None else only if self.allowed is None else self.allowed & only
        return Block(self.vms, self.need, allowed, self.forbidden | never, self.apart)


def homes_of(blocks: Iterable[Block], hosts: Hosts) -> list[frozenset[str]]:
    """The hosts that each block may go to and that hold it, were it the only one; like blocks share a set."""
    everywhere = frozenset(hosts)
    found: dict[tuple[frozenset[str] | None, frozenset[str], Resources], frozenset[str]] = {}
    homes = []
    for block in blocks:
        asked = block.allowed, block.forbidden, block.need
        if asked not in found:
            admitted = (everywhere if block.allowed is None else everywhere & block.allowed) - block.forbidden
            roomy = (host for host in admitted if hosts[host].cover(block.need))
            found[asked] = admitted if block.need == NOTHING else frozenset(roomy)
        homes.append(found[asked])
    return homes


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

    def fits(self, block: Block, host: str) -> bool:
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

    The order may name hosts that are not there: at each failure the same one serves.
    Returns the homes, or None with the blocks that found none.
    """
    filling = _Filling(hosts)
    homes: dict[int, str] = {}
    for number in _largest_first(blocks):
        block = blocks[number]
        near = order if block.allowed is None else filter(block.allowed.__contains__, order)
        home = next((host for host in near if host in hosts and filling.fits(block, host)), None)
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
        while roomiest and number not in homes:
            _, host = entry = heappop(roomiest)
            if filling.fits(blocks[number], host):
                filling.put(blocks[number], host)
                homes[number] = host
                entry = (-filling.rest(host).memory, host)
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
    needs, rooms = [block.need for block in blocks], hosts.values()
    return _too_many([one.memory for one in needs], [one.memory for one in rooms]) or _too_many(
        [one.cpu for one in needs], [one.cpu for one in rooms]
    )


def search(blocks: Sequence[Block], hosts: Hosts, budget: Budget) -> Homes | None:
    """Find homes for all blocks, or None if there are none; every possibility counts.

    Each host looked at is a step. Raises `BudgetSpentError` if the budget ends first.
    """
    filling = _Filling(hosts)
    options = [[host for host in hosts if filling.fits(block, host)] for block in blocks]
    order = sorted(range(len(blocks)), key=lambda number: (len(options[number]), *_size(blocks[number])))
    # Which blocks each host is barred from by name: hosts that differ in nothing else are alike.
    named = [block for block in blocks if block.allowed is not None or block.forbidden]
    marks = {host: tuple(block.admits(host) for block in named) for host in hosts}
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
    filling: _Filling, marks: Mapping[str, tuple[bool, ...]], block: Block, candidates: Sequence[str]
) -> Iterator[str]:
    """Hosts that take the block, one of those that are alike in all that matters, the fullest first."""
    alike = {(filling.state(host), marks[host]): host for host in candidates if filling.fits(block, host)}
    return iter(sorted(alike.values(), key=lambda host: (filling.rest(host).memory, host)))


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


def _largest_first(blocks: Sequence[Block]) -> list[int]:
    """Restricted blocks before free ones, then by size."""
    return sorted(
        range(len(blocks)), key=lambda number: (blocks[number].allowed is None, *_size(blocks[number]))
    )


def _size(block: Block) -> tuple[int, int]:
    return -block.need.memory, -block.need.cpu


def can_all_differ(choices: Sequence[AbstractSet[str]]) -> bool:
    """Whether one can be taken from each of the choices so that no two are the same."""
    sizes = sorted(map(len, choices))
    if all(size > narrower for narrower, size in enumerate(sizes)):
        return True  # the narrowest first, each finds one that is not taken yet
    return most_served(choices) == len(choices)


def most_served(choices: Sequence[AbstractSet[str]]) -> int:
    """From how many of the choices one can be taken so that no two are the same."""
    holders: dict[str, frozenset[str]] = {}
    #: From these no free place is found.
    closed: set[str] = set()
    for own in sorted(map(frozenset, choices), key=len):
        _serve(own, holders, closed)
    return len(holders)


def _serve(own: frozenset[str], holders: dict[str, frozenset[str]], closed: set[str]) -> None:
    """Give one its place by a shortest chain of exchanges, in which each takes the place of the next."""
    wanted_by: dict[str, tuple[frozenset[str], str | None]] = {}
    waiting: list[tuple[frozenset[str], str | None]] = [(own, None)]
    for choice, held in waiting:
        new = choice.difference(closed).difference(wanted_by)
        wanted_by |= dict.fromkeys(new, (choice, held))
        free = next(iter(new.difference(holders)), None)
        if free is not None:
            while free is not None:
                holders[free], free = wanted_by[free]
            return
        waiting += [(holders[place], place) for place in new]
    closed.update(wanted_by)


#: The colours that are open to each block, by its number.
_Open = Mapping[int, AbstractSet[str]]


def can_be_coloured(blocks: Sequence[Block], hosts: Hosts, budget: Budget) -> bool:
    """Whether all blocks can be coloured at once; exact.

    A block with more colours than rivals can always be coloured last and is set aside. What is left is
    searched, the block with the fewest colours first, and given up where blocks that are all apart have
    too few colours. Raises `BudgetSpentError`.
    """
    colours = homes_of(blocks, hosts)
    if not all(colours):
        return False
    rivals = _rivals(blocks)
    core = _core(colours, rivals)
    all_apart = list(_by_tag(blocks, core).values())
    return _search({number: colours[number] for number in core}, rivals, all_apart, budget)


def _rivals(blocks: Sequence[Block]) -> list[AbstractSet[int]]:
    """Which blocks each must be apart from, itself among them; the same set for those with the same tags."""
    by_tag = _by_tag(blocks, range(len(blocks)))
    of_tags = {
        tags: frozenset(number for tag in tags for number in by_tag[tag])
        for tags in {block.apart for block in blocks}
    }
    return [of_tags[block.apart] for block in blocks]


def _by_tag(blocks: Sequence[Block], numbers: Iterable[int]) -> dict[str, tuple[int, ...]]:
    """Which blocks, of those with these numbers, are all apart from each other, by the tag that says so."""
    return grouped((tag, number) for number in numbers for tag in blocks[number].apart)


def _core(colours: Sequence[AbstractSet[str]], rivals: Sequence[AbstractSet[int]]) -> list[int]:
    """What is left when the blocks that can always be coloured last are taken away, in turn."""
    near = [len(others) for others in rivals]
    left = {number for number, own in enumerate(colours) if near[number] > len(own)}
    easy = [number for number in range(len(colours)) if number not in left]
    while easy:
        for other in rivals[easy.pop()] & left:
            near[other] -= 1
            if near[other] <= len(colours[other]):
                left.discard(other)
                easy.append(other)
    return sorted(left)


def _search(
    colours: _Open, rivals: Sequence[AbstractSet[int]], all_apart: Sequence[Sequence[int]], budget: Budget
) -> bool:
    """Try every way to colour what is left; each step colours one block and narrows its rivals."""
    waiting = [colours]
    while waiting:
        left = waiting.pop()
        budget.spend(1 + len(left))
        if not left:
            return True
        if not all(can_all_differ([left[one] for one in blocks if one in left]) for blocks in all_apart):
            continue
        number = min(left, key=lambda one: (len(left[one]), one))
        for colour in sorted(left[number], reverse=True):
            rest = {
                other: own - {colour} if other in rivals[number] else own
                for other, own in left.items()
                if other != number
            }
            if all(rest.values()):
                waiting.append(rest)
    return False
