"""One course of a maintenance: wave after wave of hosts, each emptied into hosts that stay up meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.deadline import NEVER, Deadline
from ovirt_placement.planning.maintenance.reserve import Reserve, moved, out
from ovirt_placement.planning.maintenance.reversible_placement import ReversiblePlacement
from ovirt_placement.planning.maintenance.shifting import shift
from ovirt_placement.planning.maintenance.site import Site
from ovirt_placement.planning.problem.problem import Move
from ovirt_placement.rules.mobility import expected_by_engine


class Wave(NamedTuple):
    """Hosts that are out at once, and how they become empty."""

    hosts: tuple[str, ...]
    moves: tuple[Move, ...]
    stopped: tuple[str, ...]
    #: VMs that the engine moves itself, each with the host where it is expected.
    by_engine: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Outcome:
    """What a course came to."""

    waves: tuple[Wave, ...]
    #: Hosts that no wave could have.
    blocked: tuple[str, ...]
    #: Whether no course is better.
    proven: bool = False

    @property
    def migrations(self) -> int:
        return sum(len(move.vms) for wave in self.waves for move in wave.moves)

    @property
    def merit(self) -> tuple[int, int, int]:
        """Less is better: hosts that are left, rounds, migrations."""
        return len(self.blocked), len(self.waves), self.migrations


@dataclass
class Course:
    """Goes through a maintenance once; `order` says which hosts come first where nothing else does."""

    site: Site
    reserve: Reserve
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
            hosts = self._wave(reached, undone, self._required(len(undone), len(waves)), self._lead(waves))
            if hosts is None:
                break
            waves.append(hosts)
            self._state = _after(self._state, hosts)
            undone = [host for host in undone if host not in hosts.hosts]
            self._done.update(host for host in hosts.hosts if self.site.returns(host))
        return Outcome(tuple(waves), tuple(undone))

    def _lead(self, waves: Sequence[Wave]) -> tuple[str, ...]:
        return () if waves else self.lead

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
        found = self._try(reached, guess, undone)
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
            more = self._try(reached, (*chosen, host), undone)
            if more is None:
                self._refusals[host] += 1
                stuck.update(() if chosen else (host,))
                continue
            if not more[1] or len(chosen) < required:
                chosen = (*chosen, host)
            self._take_back(reached, more[0])
        found = self._try(reached, chosen, undone) if chosen else None
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
            return *before, 1, len(reached.on(host)), place[host]

        yield from sorted(undone, key=key)

    def _content_mb(self, reached: ReversiblePlacement, host: str) -> int:
        return self.site.memory_mb(reached.on(host))

    def _settled(self) -> Collection[str]:
        """Hosts whose VMs need not leave again."""
        return self.site.others | self._done

    def _too_early(self, host: str, chosen: Collection[str], undone: Collection[str]) -> bool:
        rank = self.site.rank(host)
        return any(self.site.rank(one) < rank and one not in chosen for one in undone)

    def _try(
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
        empty = all(vm in free_of for host in hosts for vm in reached.on(host))
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
        vms = (vm for host in hosts for vm in reached.on(host) if vm in self.site.by_engine.values())
        expected = ((vm, expected_by_engine(needed[vm], free_mb, *choices)) for vm in vms)
        return tuple((vm, host) for vm, host in expected if host is not None)

    def _unsafe(self, moves: Sequence[Move], hosts: Sequence[str], stopped: Sequence[str]) -> bool:
        if self.reserve.start is None:
            return False
        away = {host for host in self.site.waiting if host not in self._done} | set(hosts)
        return self.reserve.worse(out(moved(self._state, moves), away, stopped)) is not None


def _after(state: Snapshot, wave: Wave) -> Snapshot:
    return moved(state, (*wave.moves, *(Move((vm,), host) for vm, host in wave.by_engine)))
