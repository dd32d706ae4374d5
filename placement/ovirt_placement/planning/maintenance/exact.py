"""Goes through all that legal migrations and rounds can come to, where that is little."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import combinations, count
from typing import NamedTuple

from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.maintenance.course import Outcome, Wave
from ovirt_placement.planning.maintenance.reserve import Reserve, moved, out
from ovirt_placement.planning.maintenance.site import Site
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move

#: Points that may be looked at; more placements than this are not begun with.
_MOST_POINTS = 30_000
_MOST_PLACEMENTS = 20_000


class _Point(NamedTuple):
    """Where the VMs are that move, and which hosts are done."""

    where: tuple[str, ...]
    done: frozenset[str]


#: Rounds and migrations.
_Cost = tuple[int, int]
_Way = Move | tuple[str, ...]


def exact_course(site: Site, reserve: Reserve, known: Outcome, deadline: Deadline) -> Outcome | None:
    """The best that there is, `proven`; None if that is too much to find out, or the engine moves VMs itself.

    `known` is what another search has found.
    """
    search = _Search(site, reserve, known)
    return None if search.too_large else search.run(deadline)


class _Search:
    """The cheapest way to each point, those first that may end cheapest."""

    def __init__(self, site: Site, reserve: Reserve, known: Outcome) -> None:
        self._site = site
        self._reserve = reserve
        self._known = known
        targets = site.problem.targets
        self._vms = tuple(vm for vm in site.problem.where if vm in site.problem.memory_mb and targets[vm])
        self._stuck = {
            site.problem.where[vm]
            for vm in site.problem.where.keys() - set(self._vms)
            if vm not in site.options.stopped
        }
        self._placement = ProblemPlacement(site.problem)
        self._asked = frozenset(site.asked)
        self._cost: dict[_Point, _Cost] = {}
        self._before: dict[_Point, tuple[_Point, _Way]] = {}
        self._safe: dict[tuple[tuple[str, ...], frozenset[str]], bool] = {}

    @property
    def too_large(self) -> bool:
        hosts = len(self._site.problem.hosts)
        large = hosts ** len(self._vms) > _MOST_PLACEMENTS or len(self._vms) > _MOST_PLACEMENTS
        return large or bool(self._site.by_engine) or self._site.problem.guessed

    def run(self, deadline: Deadline) -> Outcome | None:
        start = _Point(tuple(self._site.problem.where[vm] for vm in self._vms), frozenset())
        self._cost[start] = (0, 0)
        number = count()
        queue = [(self._estimate(start), next(number), start)]
        closed: set[_Point] = set()
        while queue:
            estimate, _, point = heappop(queue)
            if not self._known.blocked and estimate >= self._known.merit[1:]:
                return Outcome(self._known.waves, (), proven=True)
            if point in closed:
                continue
            if point.done == self._asked:
                return self._outcome(point)
            closed.add(point)
            if len(closed) > _MOST_POINTS or deadline.over:
                return None
            for way, after, cost in self._onwards(point):
                if after not in self._cost or cost < self._cost[after]:
                    self._cost[after] = cost
                    self._before[after] = point, way
                    heappush(queue, (self._estimate(after), next(number), after))
        return self._outcome(
            min(closed, key=lambda one: (len(self._asked) - len(one.done), *self._cost[one]))
        )

    def _estimate(self, point: _Point) -> _Cost:
        """What a maintenance that goes through a point costs at least."""
        rounds, migrations = self._cost[point]
        undone = self._asked - point.done
        return (
            rounds + -(-len(undone) // self._site.options.at_once),
            migrations + sum(host in undone for host in point.where),
        )

    def _onwards(self, point: _Point) -> Iterator[tuple[_Way, _Point, _Cost]]:
        rounds, migrations = self._cost[point]
        for hosts in self._waves(point):
            yield hosts, _Point(point.where, point.done.union(hosts)), (rounds + 1, migrations)
        for move in self._moves(point):
            going = frozenset(move.vms)
            where = tuple(
                move.host if vm in going else host for vm, host in zip(self._vms, point.where, strict=True)
            )
            yield move, _Point(where, point.done), (rounds, migrations + len(move.vms))

    def _waves(self, point: _Point) -> Iterator[tuple[str, ...]]:
        """Hosts that may be out together now."""
        site, undone = self._site, self._asked - point.done
        full = self._stuck.union(point.where)
        empty = [host for host in site.asked if host in undone and host not in full]
        for size in range(1, min(site.options.at_once, len(empty)) + 1):
            for hosts in combinations(empty, size):
                rank = max(map(site.rank, hosts))
                early = all(site.rank(host) >= rank or host in hosts for host in undone)
                if early and self._survives(point, hosts):
                    yield tuple(sorted(hosts, key=site.rank))

    def _survives(self, point: _Point, hosts: Sequence[str]) -> bool:
        if self._reserve.start is None:
            return True
        site = self._site
        away = frozenset(hosts) | {host for host in site.waiting if host not in point.done}
        key = point.where, away
        if key not in self._safe:
            moves = (Move((vm,), host) for vm, host in zip(self._vms, point.where, strict=True))
            stopped = [vm for host in hosts for vm in site.stopped_on(host)]
            state = out(moved(site.opened, moves), away, stopped)
            self._safe[key] = self._reserve.worse(state) is None
        return self._safe[key]

    def _moves(self, point: _Point) -> Iterator[Move]:
        site, placement = self._site, self._placement
        for vm, host in zip(self._vms, point.where, strict=True):
            placement.move((vm,), host)
        away = {host for host in site.waiting if host not in point.done or not site.returns(host)}
        hosts = [host for host in site.problem.hosts if host not in site.never and host not in away]
        closures = dict.fromkeys(placement.closure(vm) for vm in self._vms)
        found = [
            move
            for vms in dict.fromkeys((*((vm,) for vm in self._vms), *closures))
            for host in hosts
            if placement.allows(move := Move(vms, host))
        ]
        yield from found

    def _outcome(self, point: _Point) -> Outcome:
        ways: list[_Way] = []
        end = point
        while point in self._before:
            point, way = self._before[point]
            ways.append(way)
        waves: list[Wave] = []
        moves: list[Move] = []
        for way in reversed(ways):
            if isinstance(way, Move):
                moves.append(way)
            else:
                stopped = tuple(vm for host in way for vm in self._site.stopped_on(host))
                waves.append(Wave(way, tuple(moves), stopped, ()))
                moves = []
        left = tuple(host for host in self._site.asked if host not in end.done)
        return Outcome(tuple(waves), left, proven=True)
