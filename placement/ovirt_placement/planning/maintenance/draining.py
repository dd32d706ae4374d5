"""In which rounds hosts are emptied, and how VMs are shifted out of each and back."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.maintenance.site import Site, moved, out
from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.problem.placement import ReversiblePlacement
from ovirt_placement.planning.problem.problem import Move
from ovirt_placement.rules.elements.placement import expected_by_engine


class Fit(Enum):
    """Which host takes a VM, of those that may."""

    #: The one with the most free memory by then.
    SPREAD = auto()
    #: Hosts are filled one after the other, the one with the most free memory at first before the others.
    FILL = auto()
    #: The one that is left with the least.
    SNUG = auto()


class Shifted(NamedTuple):
    """What came of it; the moves are in the placement."""

    #: VMs that found no host.
    left: tuple[str, ...]
    #: How many went to hosts of the second choice.
    again: int


#: The ways that are tried, one after the other, until one leaves nothing to wish for: which host, and whether
#: large VMs come before small ones.
_Way = tuple[Fit, bool]
_WAYS: tuple[_Way, ...] = (
    (Fit.SPREAD, True),
    (Fit.FILL, True),
    (Fit.SNUG, True),
    (Fit.SPREAD, False),
    (Fit.SNUG, False),
)


def shift(
    reached: ReversiblePlacement, hosts: Iterable[str], first: Collection[str], second: Collection[str]
) -> Shifted:
    """Empty hosts into those of the `first` choice, and what these do not take into those of the `second`.

    VMs that may not move at all are not looked at. Of several ways the one counts that leaves the fewest,
    then sends the fewest to hosts of the second choice.
    """
    problem = reached.problem
    movable = sorted(vm for host in hosts for vm in reached.placement.on(host) if problem.targets[vm])
    mark = reached.mark
    tried: list[tuple[tuple[int, int], _Way]] = []
    for way in _WAYS:
        found = _one_way(reached, movable, (first, second), way)
        if not found.left and not found.again:
            return found
        reached.back_to(mark)
        tried.append(((len(found.left), found.again), way))
    _, best = min(tried, key=lambda one: one[0])
    return _one_way(reached, movable, (first, second), best)


def _one_way(
    reached: ReversiblePlacement, movable: list[str], choices: tuple[Collection[str], ...], way: _Way
) -> Shifted:
    fit, large_first = way
    size = reached.problem.memory_mb
    left = sorted(movable, key=lambda vm: (-size[vm] if large_first else size[vm], vm))
    again = 0
    for number, hosts in enumerate(choices):
        rooms = _Rooms(reached, hosts, fit)
        before = None
        while left and before != len(left):
            before = len(left)
            left, moved = _move_each(reached, left, rooms)
            again += moved if number else 0
    return Shifted(tuple(left), again)


def _move_each(reached: ReversiblePlacement, vms: list[str], rooms: _Rooms) -> tuple[list[str], int]:
    """Try each once; those that are left, and how many moved."""
    left, gone = [], set[str]()
    for vm in vms:
        if vm in gone:
            continue
        move = rooms.move_for(vm)
        if move is None:
            left.append(vm)
        else:
            rooms.make_move(move)
            gone.update(move.vms)
    return [vm for vm in left if vm not in gone], len(gone)


class _Rooms:
    """Hosts of one choice by what they have free."""

    def __init__(self, reached: ReversiblePlacement, hosts: Collection[str], fit: Fit) -> None:
        self._reached = reached
        self._fit = fit
        free = reached.placement.free_mb
        self._by_room = sorted((free(host), host) for host in hosts)
        self._at_first = [host for _, host in reversed(self._by_room)]
        self._known = {host: mb for mb, host in self._by_room}

    def move_for(self, vm: str) -> Move | None:
        """Where a VM goes, alone or with all that the engine takes along."""
        placement, problem = self._reached.placement, self._reached.problem
        closure = placement.closure(vm)
        if len(closure) > 1:
            needed = sum(problem.memory_mb[one] for one in closure)
            for host in self._candidates(vm, needed):
                if placement.legal_closure(closure, host):
                    return Move(closure, host)
        for host in self._candidates(vm, problem.memory_mb[vm]):
            if placement.legal(vm, host):
                return Move((vm,), host)
        return None

    def make_move(self, move: Move) -> None:
        sources = {self._reached.placement.where(vm) for vm in move.vms}
        self._reached.move(move)
        for host in {*sources, move.host} & self._known.keys():
            self._by_room.pop(bisect_left(self._by_room, (self._known[host], host)))
            self._known[host] = self._reached.placement.free_mb(host)
            insort(self._by_room, (self._known[host], host))

    def _candidates(self, vm: str, needed_mb: int) -> Iterator[str]:
        """Hosts that have enough memory, the best first."""
        targets = self._reached.problem.targets[vm]
        if len(targets) * 4 < len(self._by_room):
            few = sorted((self._known[host], host) for host in targets if host in self._known)
            ordered = [(mb, host) for mb, host in few if mb >= needed_mb]
        elif self._fit is Fit.FILL:
            yield from (host for host in self._at_first if self._known[host] >= needed_mb)
            return
        else:
            ordered = self._by_room[bisect_left(self._by_room, (needed_mb, "")) :]
        yield from (host for _, host in (ordered if self._fit is Fit.SNUG else reversed(ordered)))


class Wave(NamedTuple):
    """Hosts that are out at once, and how they become empty."""

    hosts: tuple[str, ...]
    moves: tuple[Move, ...]
    stopped: tuple[str, ...]
    #: VMs that the engine moves itself, each with the host where it is expected.
    by_engine: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Outcome:
    """What a draining came to."""

    waves: tuple[Wave, ...]
    #: Hosts that no wave could have.
    blocked: tuple[str, ...]
    #: Whether no outcome is better.
    proven: bool = False

    @property
    def migrations(self) -> int:
        return sum(len(move.vms) for wave in self.waves for move in wave.moves)

    @property
    def merit(self) -> tuple[int, int, int]:
        """Less is better: hosts that are left, rounds, migrations."""
        return len(self.blocked), len(self.waves), self.migrations


@dataclass
class Draining:
    """Goes through a maintenance once; `order` says which hosts come first where nothing else does."""

    site: Site
    order: Sequence[str]
    #: Hosts that the first wave begins with.
    lead: tuple[str, ...]
    #: How many rounds it is to take: no round takes more hosts than that needs, if that costs migrations.
    rounds: int
    #: When it is given up.
    deadline: Deadline = NEVER
    _done: set[str] = field(default_factory=set)
    _state: Snapshot = field(init=False)
    #: How often a host could not be taken, by the host: the others are tried before.
    _refusals: Counter[str] = field(default_factory=Counter)

    def run(self) -> Outcome:
        """Take as many hosts as can be taken."""
        reached, self._state = ReversiblePlacement(self.site.problem), self.site.opened
        waves: list[Wave] = []
        undone = list(self.order)
        while undone and not self.deadline.over:
            lead = () if waves else self.lead
            wave = self._wave(reached, undone, self._required(len(undone), len(waves)), lead)
            if wave is None:
                break
            waves.append(wave)
            by_engine = (Move((vm,), host) for vm, host in wave.by_engine)
            self._state = moved(self._state, (*wave.moves, *by_engine))
            undone = [host for host in undone if host not in wave.hosts]
            self._done.update(host for host in wave.hosts if self.site.returns(host))
        return Outcome(tuple(waves), tuple(undone))

    def _required(self, undone: int, waves: int) -> int:
        """How many hosts the next wave must have so that the others do in the rounds that are left."""
        after = max(0, self.rounds - waves - 1)
        return max(1, undone - after * self.site.options.at_once)

    def _wave(
        self, reached: ReversiblePlacement, undone: list[str], required: int, lead: tuple[str, ...]
    ) -> Wave | None:
        """As many hosts as cost no VM a second move, and others up to what is required; None if none can."""
        at_once = self.site.options.at_once
        guess = self._guess(reached, undone, required, lead)
        found = self._try_wave(reached, guess, undone)
        if found is not None and (len(guess) <= required or not found[1]):
            return found[0]
        if found is not None:
            self._take_back(reached, found[0])
        chosen: tuple[str, ...] = ()
        stuck: set[str] = set()
        for host in self._by_choice(reached, undone, lead):
            if len(chosen) == at_once:
                break
            if self._too_early(host, {*chosen, *stuck}, undone):
                continue
            more = self._try_wave(reached, (*chosen, host), undone)
            if more is None:
                self._refusals[host] += 1
                stuck.update(() if chosen else (host,))
                continue
            if not more[1] or len(chosen) < required:
                chosen = (*chosen, host)
            self._take_back(reached, more[0])
        found = self._try_wave(reached, chosen, undone) if chosen else None
        return None if found is None else found[0]

    def _guess(
        self, reached: ReversiblePlacement, undone: list[str], required: int, lead: tuple[str, ...]
    ) -> tuple[str, ...]:
        """The hosts of the next wave, if memory were all."""
        chosen: list[str] = []
        room = sum(max(0, reached.placement.free_mb(host)) for host in self._settled())
        ranked = list(self._by_choice(reached, undone, lead))
        for host in ranked:
            content = self._content_mb(reached, host)
            full = len(chosen) >= required
            if len(chosen) == self.site.options.at_once:
                break
            if self._too_early(host, chosen, undone) or (full and content > room):
                continue
            chosen.append(host)
            room = max(0, room - content)
        return tuple(chosen)

    def _by_choice(
        self, reached: ReversiblePlacement, undone: list[str], lead: tuple[str, ...]
    ) -> Iterator[str]:
        """Hosts that go into settled ones, those with the most first; then those with the fewest VMs."""
        room = sum(max(0, reached.placement.free_mb(host)) for host in self._settled())
        place = {host: number for number, host in enumerate(self.order)}

        def key(host: str) -> tuple[int, ...]:
            content = self._content_mb(reached, host)
            led = lead.index(host) if host in lead else len(lead)
            before = self.site.rank(host), led, self._refusals[host]
            if content <= room:
                return *before, 0, -content, place[host]
            return *before, 1, len(reached.placement.on(host)), place[host]

        yield from sorted(undone, key=key)

    def _content_mb(self, reached: ReversiblePlacement, host: str) -> int:
        return self.site.memory_mb(reached.placement.on(host))

    def _settled(self) -> Collection[str]:
        """Hosts whose VMs need not leave again."""
        return self.site.others | self._done

    def _too_early(self, host: str, chosen: Collection[str], undone: Collection[str]) -> bool:
        rank = self.site.rank(host)
        return any(self.site.rank(one) < rank and one not in chosen for one in undone)

    def _try_wave(
        self, reached: ReversiblePlacement, hosts: tuple[str, ...], undone: list[str]
    ) -> tuple[Wave, int] | None:
        """The wave, and how many VMs must move again for it; None if it cannot be: nothing changes then."""
        site, mark = self.site, reached.mark
        stopped = tuple(vm for host in hosts for vm in site.stopped_on(host))
        later = [host for host in undone if host not in hosts and host not in site.waiting]
        settled = [host for host in self._settled() if host not in hosts]
        found = shift(reached, hosts, settled, later)
        moves = reached.since(mark)
        by_engine = self._by_engine(reached, hosts, (settled, later))
        free_of = {vm for vm, _ in by_engine}.union(stopped)
        empty = all(vm in free_of for host in hosts for vm in reached.placement.on(host))
        if found.left or not empty or self._unsafe(moves, hosts, stopped):
            reached.back_to(mark)
            return None
        for vm, host in by_engine:
            reached.move(Move((vm,), host))
        return Wave(hosts, moves, stopped, by_engine), found.again

    def _take_back(self, reached: ReversiblePlacement, wave: Wave) -> None:
        reached.back_to(reached.mark - len(wave.moves) - len(wave.by_engine))

    def _by_engine(
        self, reached: ReversiblePlacement, hosts: Sequence[str], choices: tuple[list[str], ...]
    ) -> tuple[tuple[str, str], ...]:
        """Where the hosted engine is expected: settled if possible."""
        needed, free_mb = self.site.problem.memory_mb, reached.placement.free_mb
        engines = self.site.by_engine.values()
        vms = (vm for host in hosts for vm in reached.placement.on(host) if vm in engines)
        expected = ((vm, expected_by_engine(needed[vm], free_mb, *choices)) for vm in vms)
        return tuple((vm, host) for vm, host in expected if host is not None)

    def _unsafe(self, moves: Sequence[Move], hosts: Sequence[str], stopped: Sequence[str]) -> bool:
        if self.site.reserve.start is None:
            return False
        away = {host for host in self.site.waiting if host not in self._done} | set(hosts)
        return self.site.reserve.worse(out(moved(self._state, moves), away, stopped)) is not None
