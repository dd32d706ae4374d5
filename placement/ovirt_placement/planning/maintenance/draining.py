"""In which rounds hosts are emptied, and how VMs are shifted out of each and back."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from ovirt_placement.planning.maintenance.site import Site
from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move
from ovirt_placement.rules.elements.placement import expected_by_engine

#: The orders that are tried in turn, until one leaves nothing to wish for: whether large VMs come
#: before small ones, and whether the host takes a VM that is left with the least memory, else with the most.
_ORDERS = ((True, False), (True, True), (False, False), (False, True))


class Shifted(NamedTuple):
    """How many VMs found no host, and how many went to hosts of the second choice; and the moves."""

    left: int
    again: int
    moves: tuple[Move, ...]


def shift(placement: ProblemPlacement, hosts: Collection[str], choices: Sequence[Collection[str]]) -> Shifted:
    """Empty hosts into those of the first choice, and what these do not take into those of the second.

    VMs that may not move at all are not looked at.
    """
    before = {vm: host for host in hosts for vm in placement.on(host)}
    tried: list[Shifted] = []
    for order in _ORDERS:
        placement.put(before)
        tried.append(_shifted(placement, before, choices, *order))
        if tried[-1][:2] == (0, 0):
            return tried[-1]
    best = min(tried, key=lambda one: one[:2])
    placement.put(before | {vm: move.host for move in best.moves for vm in move.vms})
    return best


def _shifted(
    placement: ProblemPlacement,
    vms: Iterable[str],
    choices: Sequence[Collection[str]],
    large_first: bool,
    snug: bool,
) -> Shifted:
    size = placement.problem.memory_mb
    left = [vm for vm in vms if placement.problem.targets[vm]]
    left.sort(key=lambda vm: (-size[vm] if large_first else size[vm], vm))
    again, moves = 0, list[Move]()
    for number, others in enumerate(choices):
        rooms = _Rooms(placement, others, snug)
        gone = set(left)
        while left and gone:
            gone = set()
            for vm in left:
                move = None if vm in gone else rooms.move_for(vm)
                if move is not None:
                    rooms.make_move(move)
                    moves.append(move)
                    gone.update(move.vms)
            left = [vm for vm in left if vm not in gone]
            again += number * len(gone)
    return Shifted(len(left), again, tuple(moves))


class _Rooms:
    """Hosts of one choice by what they have free."""

    def __init__(self, placement: ProblemPlacement, hosts: Collection[str], snug: bool) -> None:
        self._placement = placement
        self._snug = snug
        self._by_room = sorted((placement.free_mb(host), host) for host in hosts)
        self._known = {host: mb for mb, host in self._by_room}

    def move_for(self, vm: str) -> Move | None:
        """Where a VM goes, with all that the engine takes along if possible, else alone."""
        placement, problem = self._placement, self._placement.problem
        for vms in dict.fromkeys((placement.closure(vm), (vm,))):
            for host in self._roomy(sum(problem.memory_mb[one] for one in vms)):
                if host in problem.targets[vm] and placement.allows(move := Move(vms, host)):
                    return move
        return None

    def make_move(self, move: Move) -> None:
        sources = {self._placement.where(vm) for vm in move.vms}
        self._placement.move(move.vms, move.host)
        for host in {*sources, move.host} & self._known.keys():
            self._by_room.pop(bisect_left(self._by_room, (self._known[host], host)))
            self._known[host] = self._placement.free_mb(host)
            insort(self._by_room, (self._known[host], host))

    def _roomy(self, needed_mb: int) -> Iterator[str]:
        """Hosts that have enough memory, the best first."""
        enough = self._by_room[bisect_left(self._by_room, (needed_mb, "")) :]
        return (host for _, host in (enough if self._snug else reversed(enough)))


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
    #: Whether some host has its turn before one of a lower rank, which could not be taken earlier.
    early: bool = False

    @property
    def merit(self) -> tuple[int, bool, int, int]:
        """Less is better: hosts that are left, whether some are too early, rounds, migrations."""
        migrations = sum(len(move.vms) for wave in self.waves for move in wave.moves)
        return len(self.blocked), self.early, len(self.waves), migrations


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
        placement = ProblemPlacement(self.site.problem)
        waves: list[Wave] = []
        undone = list(self.order)
        while undone and not self.deadline.over:
            later = max(0, self.rounds - len(waves) - 1) * self.site.options.at_once
            wave = self._wave(placement, undone, max(1, len(undone) - later), None if waves else self.lead)
            if wave is None:
                break
            waves.append(wave)
            undone = [host for host in undone if host not in wave.hosts]
            self._done.update(host for host in wave.hosts if self.site.returns(host))
        ranks = [sorted(map(self.site.rank, wave.hosts)) for wave in waves]
        early = any(before[-1] > after[0] for before, after in pairwise(ranks))
        return Outcome(tuple(waves), tuple(undone), early=early)

    def _wave(
        self, placement: ProblemPlacement, undone: list[str], required: int, lead: str | None
    ) -> Wave | None:
        """As many hosts as cost no VM a second move, and others up to what is required; None if none can."""
        before = {vm: host for host in undone for vm in placement.on(host)}
        ranked = self._by_choice(placement, undone, lead)
        guess = self._guess(placement, ranked, required)
        found = self._try_wave(placement, guess, undone)
        if found is not None and (len(guess) <= required or not found.again):
            return found
        placement.put(before)
        chosen: tuple[str, ...] = ()
        stuck: set[str] = set()
        for host in ranked:
            if len(chosen) == self.site.options.at_once:
                break
            if self._too_early(host, {*undone}.difference(chosen, stuck)):
                continue
            found = self._try_wave(placement, (*chosen, host), undone)
            placement.put(before)
            if found is None:
                self._refusals[host] += 1
                stuck.update(() if chosen else (host,))
            elif not found.again or len(chosen) < required:
                chosen = (*chosen, host)
        return self._try_wave(placement, chosen, undone) if chosen else None

    def _guess(self, placement: ProblemPlacement, ranked: Sequence[str], required: int) -> tuple[str, ...]:
        """The hosts of the next wave, if memory were all: that spares large clusters trying each."""
        chosen: list[str] = []
        room = self._room(placement)
        for host in ranked:
            content = self.site.memory_mb(placement.on(host))
            fits = len(chosen) < required or content <= room
            if fits and not self._too_early(host, {*ranked}.difference(chosen)):
                chosen.append(host)
                room = max(0, room - content)
            if len(chosen) == self.site.options.at_once:
                break
        return tuple(chosen)

    def _too_early(self, host: str, undone: Collection[str]) -> bool:
        return any(self.site.rank(one) < self.site.rank(host) for one in undone)

    def _room(self, placement: ProblemPlacement) -> int:
        return sum(max(0, placement.free_mb(host)) for host in self._settled)

    def _by_choice(self, placement: ProblemPlacement, undone: list[str], lead: str | None) -> list[str]:
        """Hosts that go into settled ones, those with the most first; then those with the fewest VMs."""
        room = self._room(placement)
        place = {host: number for number, host in enumerate(self.order)}

        def key(host: str) -> tuple[int, ...]:
            on = placement.on(host)
            content = self.site.memory_mb(on)
            fits = (0, -content) if content <= room else (1, len(on))
            return self.site.rank(host), host != lead, self._refusals[host], *fits, place[host]

        return sorted(undone, key=key)

    @property
    def _settled(self) -> frozenset[str]:
        """Hosts whose VMs need not leave again."""
        return self.site.others | self._done

    def _try_wave(
        self, placement: ProblemPlacement, hosts: tuple[str, ...], undone: list[str]
    ) -> Wave | None:
        """The wave; None if it cannot be. The placement has its moves in any case."""
        site = self.site
        later = [host for host in undone if host not in hosts and host not in site.waiting]
        choices = [host for host in self._settled if host not in hosts], later
        found = shift(placement, hosts, choices)
        by_engine = []
        staying = {vm for host in hosts for vm in placement.on(host)}.difference(*map(site.stopped_on, hosts))
        for vm in staying & set(site.by_engine.values()):
            needed_mb = site.problem.memory_mb[vm]
            if host := expected_by_engine(needed_mb, placement.free_mb, *choices):
                by_engine.append((vm, host))
                staying.remove(vm)
        if found.left or staying:
            return None
        placement.put(dict(by_engine))
        if not site.survives(placement.moved, hosts, self._done):
            return None
        return Wave(hosts, found.moves, tuple(by_engine), found.again)
