"""In which rounds hosts are emptied, and how VMs are shifted out of each and back."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from ovirt_placement.planning.maintenance.site import Site
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


#: The ways that are tried, one after the other, until one leaves nothing to wish for: which host, and whether
#: large VMs come before small ones.
_WAYS = (
    (Fit.SPREAD, True),
    (Fit.FILL, True),
    (Fit.SNUG, True),
    (Fit.SPREAD, False),
    (Fit.SNUG, False),
)


class Shifted(NamedTuple):
    """How many VMs found no host, and how many went to hosts of the second choice; less is better."""

    left: int
    again: int


def shift(
    reached: ReversiblePlacement, hosts: Collection[str], choices: Sequence[Collection[str]]
) -> Shifted:
    """Empty hosts into those of the first choice, and what these do not take into those of the second.

    The moves are in the placement. VMs that may not move at all are not looked at.
    """
    mark, tried = reached.mark, []
    for way in _WAYS:
        found = _shifted(reached, hosts, choices, *way)
        if found == (0, 0):
            return found
        reached.back_to(mark)
        tried.append(found)
    return _shifted(reached, hosts, choices, *_WAYS[tried.index(min(tried))])


def _shifted(
    reached: ReversiblePlacement,
    hosts: Collection[str],
    choices: Sequence[Collection[str]],
    fit: Fit,
    large_first: bool,
) -> Shifted:
    problem, size = reached.problem, reached.problem.memory_mb
    left = [vm for host in hosts for vm in reached.placement.on(host) if problem.targets[vm]]
    left.sort(key=lambda vm: (-size[vm] if large_first else size[vm], vm))
    again = 0
    for number, others in enumerate(choices):
        rooms = _Rooms(reached, others, fit)
        gone = set(left)
        while left and gone:
            gone = set()
            for vm in left:
                move = None if vm in gone else rooms.move_for(vm)
                if move is not None:
                    rooms.make_move(move)
                    gone.update(move.vms)
            left = [vm for vm in left if vm not in gone]
            again += number * len(gone)
    return Shifted(len(left), again)


class _Rooms:
    """Hosts of one choice by what they have free."""

    def __init__(self, reached: ReversiblePlacement, hosts: Collection[str], fit: Fit) -> None:
        self._reached = reached
        self._fit = fit
        self._by_room = sorted((reached.placement.free_mb(host), host) for host in hosts)
        self._at_first = [host for _, host in reversed(self._by_room)]
        self._known = {host: mb for mb, host in self._by_room}

    def move_for(self, vm: str) -> Move | None:
        """Where a VM goes, with all that the engine takes along if possible, else alone."""
        placement, problem = self._reached.placement, self._reached.problem
        for vms in dict.fromkeys((placement.closure(vm), (vm,))):
            for host in self._roomy(sum(problem.memory_mb[one] for one in vms)):
                if host in problem.targets[vm] and placement.allows(move := Move(vms, host)):
                    return move
        return None

    def make_move(self, move: Move) -> None:
        sources = {self._reached.placement.where(vm) for vm in move.vms}
        self._reached.move(move)
        for host in {*sources, move.host} & self._known.keys():
            self._by_room.pop(bisect_left(self._by_room, (self._known[host], host)))
            self._known[host] = self._reached.placement.free_mb(host)
            insort(self._by_room, (self._known[host], host))

    def _roomy(self, needed_mb: int) -> Iterator[str]:
        """Hosts that have enough memory, the best first."""
        if self._fit is Fit.FILL:
            return (host for host in self._at_first if self._known[host] >= needed_mb)
        enough = self._by_room[bisect_left(self._by_room, (needed_mb, "")) :]
        return (host for _, host in (enough if self._fit is Fit.SNUG else reversed(enough)))


class Wave(NamedTuple):
    """Hosts that are out at once, and how they become empty."""

    hosts: tuple[str, ...]
    moves: tuple[Move, ...] = ()
    #: VMs that the engine moves itself, each with the host where it is expected.
    by_engine: tuple[tuple[str, str], ...] = ()
    #: How many VMs must move again since they went to hosts that are emptied later.
    again: int = 0


@dataclass(frozen=True)
class Outcome:
    """What a draining came to."""

    waves: tuple[Wave, ...]
    #: Hosts that no wave could have.
    blocked: tuple[str, ...]
    #: Whether no outcome is better.
    proven: bool = False

    @property
    def merit(self) -> tuple[int, int, int]:
        """Less is better: hosts that are left, rounds, migrations."""
        migrations = sum(len(move.vms) for wave in self.waves for move in wave.moves)
        return len(self.blocked), len(self.waves), migrations


@dataclass
class Draining:
    """Goes through a maintenance once; `order` says which hosts come first where nothing else does."""

    site: Site
    order: Sequence[str]
    #: The host that the first wave begins with, if that is given.
    lead: str | None
    #: How many rounds it is to take: no round takes more hosts than that needs, if that costs migrations.
    rounds: int
    #: When it is given up.
    deadline: Deadline = NEVER
    _done: set[str] = field(default_factory=set)
    #: How often a host could not be taken, by the host: the others are tried before.
    _refusals: Counter[str] = field(default_factory=Counter)

    def run(self) -> Outcome:
        """Take as many hosts as can be taken."""
        reached = ReversiblePlacement(self.site.problem)
        waves: list[Wave] = []
        undone = list(self.order)
        while undone and not self.deadline.over:
            later = max(0, self.rounds - len(waves) - 1) * self.site.options.at_once
            wave = self._wave(reached, undone, max(1, len(undone) - later), None if waves else self.lead)
            if wave is None:
                break
            waves.append(wave)
            undone = [host for host in undone if host not in wave.hosts]
            self._done.update(host for host in wave.hosts if self.site.returns(host))
        return Outcome(tuple(waves), tuple(undone))

    def _wave(
        self, reached: ReversiblePlacement, undone: list[str], required: int, lead: str | None
    ) -> Wave | None:
        """As many hosts as cost no VM a second move, and others up to what is required; None if none can."""
        mark, ranked = reached.mark, self._by_choice(reached, undone, lead)
        guess = self._guess(reached, ranked, required)
        found = self._try_wave(reached, guess, undone)
        if found is not None and (len(guess) <= required or not found.again):
            return found
        reached.back_to(mark)
        chosen: tuple[str, ...] = ()
        stuck: set[str] = set()
        for host in ranked:
            if len(chosen) == self.site.options.at_once:
                break
            if self._too_early(host, {*undone}.difference(chosen, stuck)):
                continue
            found = self._try_wave(reached, (*chosen, host), undone)
            reached.back_to(mark)
            if found is None:
                self._refusals[host] += 1
                stuck.update(() if chosen else (host,))
            elif not found.again or len(chosen) < required:
                chosen = (*chosen, host)
        return self._try_wave(reached, chosen, undone) if chosen else None

    def _guess(self, reached: ReversiblePlacement, ranked: Sequence[str], required: int) -> tuple[str, ...]:
        """The hosts of the next wave, if memory were all: that spares large clusters trying each."""
        chosen: list[str] = []
        room = self._room(reached)
        for host in ranked:
            content = self.site.memory_mb(reached.placement.on(host))
            fits = len(chosen) < required or content <= room
            if fits and not self._too_early(host, {*ranked}.difference(chosen)):
                chosen.append(host)
                room = max(0, room - content)
            if len(chosen) == self.site.options.at_once:
                break
        return tuple(chosen)

    def _too_early(self, host: str, undone: Collection[str]) -> bool:
        return any(self.site.rank(one) < self.site.rank(host) for one in undone)

    def _room(self, reached: ReversiblePlacement) -> int:
        return sum(max(0, reached.placement.free_mb(host)) for host in self._settled)

    def _by_choice(self, reached: ReversiblePlacement, undone: list[str], lead: str | None) -> list[str]:
        """Hosts that go into settled ones, those with the most first; then those with the fewest VMs."""
        room = self._room(reached)
        place = {host: number for number, host in enumerate(self.order)}

        def key(host: str) -> tuple[int, ...]:
            on = reached.placement.on(host)
            content = self.site.memory_mb(on)
            fits = (0, -content) if content <= room else (1, len(on))
            return self.site.rank(host), host != lead, self._refusals[host], *fits, place[host]

        return sorted(undone, key=key)

    @property
    def _settled(self) -> frozenset[str]:
        """Hosts whose VMs need not leave again."""
        return self.site.others | self._done

    def _try_wave(
        self, reached: ReversiblePlacement, hosts: tuple[str, ...], undone: list[str]
    ) -> Wave | None:
        """The wave; None if it cannot be: nothing changes then."""
        site, placement, mark = self.site, reached.placement, reached.mark
        later = [host for host in undone if host not in hosts and host not in site.waiting]
        choices = [host for host in self._settled if host not in hosts], later
        found = shift(reached, hosts, choices)
        moves, by_engine = reached.since(mark), []
        staying = {vm for host in hosts for vm in placement.on(host)}.difference(*map(site.stopped_on, hosts))
        for vm in staying & set(site.by_engine.values()):
            needed_mb = site.problem.memory_mb[vm]
            if host := expected_by_engine(needed_mb, placement.free_mb, *choices):
                by_engine.append((vm, host))
                staying.remove(vm)
        if found.left or staying or not site.survives(placement.moved, hosts, self._done):
            reached.back_to(mark)
            return None
        for vm, host in by_engine:
            reached.move(Move((vm,), host))
        return Wave(hosts, moves, tuple(by_engine), found.again)
