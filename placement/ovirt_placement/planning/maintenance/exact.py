"""The fewest rounds and migrations: bounds, an exact search for few hosts, and the best outcome found."""

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from ovirt_placement.planning.maintenance.draining import Draining, Outcome, Wave
from ovirt_placement.planning.maintenance.site import Site, moved, out
from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.bound import BestFirst, Cost, legal_moves
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Goal, Move

#: Of VMs on other hosts this many are thought of as stepping aside for those that leave.
_MOST_EVICTED = 50


def rounds_at_least(site: Site) -> int:
    """Rounds that any plan has in which all hosts are maintained."""
    if not site.asked:
        return 0
    at_least = max(1, _ceil(len(site.asked), site.options.at_once), _by_memory(site))
    for hosts, needed in _places(site):
        at_least = max(at_least, _by_places(site, hosts, needed))
    return at_least


def migrations_at_least(site: Site, rounds: int) -> int:
    """Migrations that any plan has that takes this many rounds: all VMs leave, some again."""
    movable = {host: [vm.id for vm in site.on(host) if site.problem.targets[vm.id]] for host in site.asked}
    smallest = max(1, len(site.asked) - (rounds - 1) * site.options.at_once)
    again = max(_again_by_memory(site, movable, smallest), _again_by_targets(site, movable))
    return sum(map(len, movable.values())) + again


def _by_memory(site: Site) -> int:
    """Hosts that are out together leave room for all VMs, and for those that a failure takes down."""
    free = sum(site.problem.free_mb.values()) - _kept_free(site)
    sizes = []
    for host in site.asked:
        if host in site.problem.free_mb:
            stopped = site.memory_mb(vm for vm in site.stopped_on(host) if vm in site.problem.memory_mb)
            content = site.memory_mb(vm.id for vm in site.on(host))
            sizes.append(max(0, site.problem.free_mb[host] + content - stopped))
    return packs_at_least(sizes, free)


def packs_at_least(sizes: Iterable[int], room: int) -> int:
    """How many packs of no more than `room` things of these sizes take at least; none where one is larger."""
    known = sorted((size for size in sizes if size), reverse=True)
    if not known or known[0] > room:
        return 0
    best = 0
    for least in {0, *(size for size in known if size <= room // 2)}:
        # Two of the large ones never share a pack; the middle ones fill what these leave.
        alone = [size for size in known if size > room - least]
        large = [size for size in known if room // 2 < size <= room - least]
        middle = sum(size for size in known if least <= size <= room // 2)
        more = middle - (len(large) * room - sum(large))
        best = max(best, len(alone) + len(large) + max(0, _ceil(more, room)))
    return best


def _kept_free(site: Site) -> int:
    """Memory that is free wherever all failures are survived: on average over those that fail."""
    if site.reserve.start is None or site.reserve.start.sets or site.reserve.start.unknown:
        return 0
    if any(host.free_huge_pages for host in site.opened.hosts):
        return 0
    failures = site.opened.cluster_by_id[site.cluster].ha_failures
    staying = len(site.problem.hosts) - 1
    protected = site.memory_mb(
        vm.id
        for host in site.problem.hosts
        for vm in site.on(host)
        if vm.ha and vm.id not in site.options.stopped
    )
    return 0 if staying <= failures else _ceil(failures * protected, staying - failures)


def _places(site: Site) -> Iterator[tuple[frozenset[str], int]]:
    """Sets of hosts of which a number must be up at any time, since VMs have no others."""
    problem = site.problem
    if problem.guessed:
        return
    vms = [vm.id for host in site.asked for vm in site.on(host) if vm.id not in site.options.stopped]
    yield from ((hosts, 1) for hosts in {_open_to(site, vm) for vm in vms})
    # A rule of which no VM is on these hosts asks for none of them.
    goals = {goal.number: goal for vm in vms for goal in problem.goals_of.get(vm, ())}
    for goal in goals.values():
        if goal.hard and goal.satisfied:
            yield from _of_goal(site, goal)


def _of_goal(site: Site, goal: Goal) -> Iterator[tuple[frozenset[str], int]]:
    vms = [vm for vm in goal.vms if vm not in site.options.stopped]
    if goal.gathers:
        yield frozenset.intersection(*(_open_to(site, vm) for vm in vms)), 1
    elif goal.limit is not None and not goal.limit.place_of:
        needed = _ceil(len(goal.limit.sets(vms)), goal.limit.most)
        hosts = frozenset[str]()
        for vm in vms:
            hosts |= _open_to(site, vm)
            # The more hosts there are, the less they ask for: this many are enough to ask for nothing.
            if len(hosts) - needed >= len(site.asked):
                return
        yield hosts, needed


def _by_places(site: Site, hosts: frozenset[str], needed: int) -> int:
    spare = len(hosts) - needed
    asked = len(hosts.intersection(site.asked))
    return _ceil(asked, spare) if asked and spare > 0 else 0


def _open_to(site: Site, vm: str) -> frozenset[str]:
    return site.problem.targets[vm] | {site.problem.where[vm]}


def _again_by_memory(site: Site, movable: Mapping[str, Sequence[str]], smallest: int) -> int:
    """Of the first wave, VMs that hosts which stay up have no room for.

    They go to hosts that are emptied later. So would VMs that step aside for them, who need not move else.
    """
    others, size = site.others, site.problem.memory_mb
    free = sum(max(0, site.problem.free_mb[host]) for host in others)
    evicted = sorted((size[vm.id] for host in others for vm in site.on(host)), reverse=True)[:_MOST_EVICTED]
    first = _first(site, movable, smallest)
    leaving = sum(sorted(len(movable[host]) for host in first)[:smallest])
    outwards = {
        host: sorted(size[vm] for vm in vms if not others.isdisjoint(site.problem.targets[vm]))
        for host, vms in movable.items()
    }
    every = sorted(mb for sizes in outwards.values() for mb in sizes)
    best = None
    for number in range(len(evicted) + 1):
        room = free + sum(evicted[:number])
        by_all = leaving - _fitting(every, room)
        by_each = sorted(len(movable[host]) - _fitting(outwards[host], room) for host in first)
        again = 2 * number + max(0, by_all, sum(by_each[:smallest]))
        best = again if best is None else min(best, again)
    return best or 0


def _first(site: Site, hosts: Collection[str], count: int) -> list[str]:
    """Hosts of which the first wave that has any of `hosts` has this many: higher ranks come later."""
    lowest = min((site.rank(host) for host in hosts), default=0)
    early = [host for host in hosts if site.rank(host) == lowest]
    return early if len(early) >= count else list(hosts)


def _fitting(sizes: Sequence[int], room: int) -> int:
    """How many of these fit at most, the smallest first."""
    for number, size in enumerate(sizes):
        room -= size
        if room < 0:
            return number
    return len(sizes)


def _again_by_targets(site: Site, movable: Mapping[str, Sequence[str]]) -> int:
    """VMs that have no hosts but such that are emptied: the first of these sends its own to another one."""
    if site.problem.guessed:
        return 0
    asked = frozenset(site.asked)
    crowds: defaultdict[frozenset[str], Counter[str]] = defaultdict(Counter)
    for host, vms in movable.items():
        for vm in vms:
            open_to = _open_to(site, vm)
            if open_to <= asked:
                crowds[open_to][host] += 1
    return sum(min(crowd[host] for host in _first(site, open_to, 1)) for open_to, crowd in crowds.items())


def _ceil(number: int, parts: int) -> int:
    return -(-number // parts)


#: Points that may be looked at; more placements than this are not begun with.
_MOST_POINTS = 30_000
_MOST_PLACEMENTS = 20_000


class _Point(NamedTuple):
    """Where the VMs are that move, and which hosts are done."""

    where: tuple[str, ...]
    done: frozenset[str]


_Way = Move | tuple[str, ...]


class _Search:
    """The cheapest way to each point, those first that may end cheapest; `known` was found otherwise."""

    def __init__(self, site: Site, known: Outcome) -> None:
        self._site = site
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
        start = _Point(tuple(site.problem.where[vm] for vm in self._vms), frozenset())
        self._search: BestFirst[_Point, _Way] = BestFirst(start, self._estimate(start, (0, 0)), (0, 0))
        self._safe: dict[tuple[tuple[str, ...], frozenset[str]], bool] = {}

    @property
    def _too_large(self) -> bool:
        """Whether it is too much to find out, or the engine moves VMs itself."""
        hosts = len(self._site.problem.hosts)
        large = hosts ** len(self._vms) > _MOST_PLACEMENTS or len(self._vms) > _MOST_PLACEMENTS
        return large or bool(self._site.by_engine) or self._site.problem.guessed

    def run(self, deadline: Deadline) -> Outcome | None:
        """The best that there is, `proven`; None if that is not found out."""
        if self._too_large:
            return None
        search, seen = self._search, list[_Point]()
        while (point := search.take_next()) is not None:
            if not self._known.blocked and search.rank >= self._known.merit[1:]:
                return Outcome(self._known.waves, (), proven=True)
            if point.done == self._asked:
                return self._outcome(point)
            seen.append(point)
            if len(seen) > _MOST_POINTS or deadline.over:
                return None
            for way, after, cost in self._onwards(point):
                if search.cheaper(after, cost):
                    search.add(point, way, after, cost, self._estimate(after, cost))
        return self._outcome(min(seen, key=lambda one: (len(self._asked) - len(one.done), *search.cost(one))))

    def _estimate(self, point: _Point, cost: Cost) -> Cost:
        """What a maintenance that goes through a point costs at least."""
        rounds, migrations = cost
        undone = self._asked - point.done
        return (
            rounds + _ceil(len(undone), self._site.options.at_once),
            migrations + sum(host in undone for host in point.where),
        )

    def _onwards(self, point: _Point) -> Iterator[tuple[_Way, _Point, Cost]]:
        rounds, migrations = self._search.cost(point)
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
        if self._site.reserve.start is None:
            return True
        site = self._site
        away = frozenset(hosts) | {host for host in site.waiting if host not in point.done}
        key = point.where, away
        if key not in self._safe:
            moves = (Move((vm,), host) for vm, host in zip(self._vms, point.where, strict=True))
            stopped = [vm for host in hosts for vm in site.stopped_on(host)]
            state = out(moved(site.opened, moves), away, stopped)
            self._safe[key] = self._site.reserve.worse(state) is None
        return self._safe[key]

    def _moves(self, point: _Point) -> list[Move]:
        site, placement = self._site, self._placement
        placement.put(dict(zip(self._vms, point.where, strict=True)))
        away = {host for host in site.waiting if host not in point.done or not site.returns(host)}
        hosts = [host for host in site.problem.hosts if host not in site.never and host not in away]
        return legal_moves(placement, self._vms, hosts)

    def _outcome(self, point: _Point) -> Outcome:
        waves: list[Wave] = []
        moves: list[Move] = []
        for way in self._search.steps_to(point):
            if isinstance(way, Move):
                moves.append(way)
            else:
                stopped = tuple(vm for host in way for vm in self._site.stopped_on(host))
                waves.append(Wave(way, tuple(moves), stopped, ()))
                moves = []
        left = tuple(host for host in self._site.asked if host not in point.done)
        return Outcome(tuple(waves), left, proven=True)


#: This many hosts are tried as the first one, and then orders that are drawn by lot.
_MOST_LEADS = 10
_MOST_DRAWN = 20
#: The share of the time for them; the rest is for a search through all, where there is little to go through.
_DRAINING_SHARE = 0.7
_Beginning = tuple[Sequence[str], tuple[str, ...]]


def best_outcome(site: Site, deadline: Deadline) -> Outcome:
    """What leaves the fewest hosts, then has the fewest rounds, then the fewest migrations.

    The first that meets all bounds ends it.
    """
    rounds = rounds_at_least(site)
    best = _by_draining(site, rounds, deadline.within(_DRAINING_SHARE))
    if meets_bounds(site, best, rounds):
        return replace(best, proven=not site.problem.guessed)
    return _Search(site, best).run(deadline) or best


def _by_draining(site: Site, rounds: int, deadline: Deadline) -> Outcome:
    beginnings = _beginnings(site)
    best = Draining(site, *next(beginnings), rounds).run()
    for order, lead in beginnings:
        if deadline.over or meets_bounds(site, best, rounds):
            break
        for target in sorted({rounds, len(best.waves)}):
            outcome = Draining(site, order, lead, target, deadline).run()
            best = min(best, outcome, key=lambda one: one.merit)
    return best


def meets_bounds(site: Site, outcome: Outcome, rounds: int) -> bool:
    """Whether no outcome can be better."""
    if outcome.blocked or len(outcome.waves) > rounds:
        return False
    return outcome.migrations <= migrations_at_least(site, rounds)


def _beginnings(site: Site) -> Iterator[_Beginning]:
    """Orders of hosts, each with those that the first wave begins with."""
    by_number = sorted(site.asked, key=lambda host: (len(site.on(host)), host))
    yield by_number, ()
    yield by_number[::-1], ()
    for host in by_number[:_MOST_LEADS]:
        yield by_number, (host,)
    chance = random.Random(len(by_number))  # noqa: S311 - plans are to be the same each time
    for _ in range(_MOST_DRAWN):
        order = list(by_number)
        chance.shuffle(order)
        yield order, tuple(order)
