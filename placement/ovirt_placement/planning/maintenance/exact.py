"""The fewest rounds and migrations: bounds, an exact search for few hosts, and the best outcome found."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, repeat
from typing import NamedTuple

from ovirt_placement.planning.maintenance.draining import Draining, Outcome, Wave
from ovirt_placement.planning.maintenance.site import Site
from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.bound import BestFirst, Cost, Places, legal_moves, places_after, put_at
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move

#: Of VMs on other hosts this many are thought of as stepping aside for those that leave.
_MOST_EVICTED = 50


def rounds_at_least(site: Site) -> int:
    """Rounds that any plan has in which all hosts are maintained."""
    if not site.asked:
        return 0
    at_least = max(1, _ceil(len(site.asked), site.options.at_once), _by_memory(site))
    if site.problem.guessed:
        return at_least
    vms = {vm.id for host in site.asked for vm in site.on(host)} - site.options.stopped
    return max([at_least, *(_by_places(site, hosts) for hosts in {_open_to(site, vm) for vm in vms})])


def migrations_at_least(site: Site, rounds: int) -> int:
    """Migrations that any plan has that takes this many rounds: all VMs leave, some again."""
    movable = {host: [vm.id for vm in site.on(host) if site.problem.targets[vm.id]] for host in site.asked}
    smallest = max(1, len(site.asked) - (rounds - 1) * site.options.at_once)
    again = max(_again_by_memory(site, movable, smallest), _again_by_targets(site, movable))
    return sum(map(len, movable.values())) + again


def _by_memory(site: Site) -> int:
    """Hosts that are out together leave room for all VMs."""
    free_mb = site.problem.free_mb
    sizes = []
    for host in free_mb.keys() & site.asked:
        staying = {vm.id for vm in site.on(host)}.difference(site.stopped_on(host))
        sizes.append(max(0, free_mb[host] + site.memory_mb(staying)))
    return packs_at_least(sizes, sum(free_mb.values()))


def packs_at_least(sizes: Iterable[int], room: int) -> int:
    """How many packs of no more than `room` things of these sizes take at least; none where one is larger."""
    known = [size for size in sizes if size]
    if not known or max(known) > room:
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


def _by_places(site: Site, hosts: frozenset[str]) -> int:
    """Of the hosts of a VM that has no others one must be up at any time."""
    asked, spare = len(hosts.intersection(site.asked)), len(hosts) - 1
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
    """Where VMs are, and which hosts are done."""

    places: Places
    done: frozenset[str]


#: A migration, or hosts that are out together.
_Way = Move | tuple[str, ...]


class _Search:
    """The cheapest way to each point, those first that may end cheapest; `known` was found otherwise."""

    def __init__(self, site: Site, known: Outcome) -> None:
        self._site = site
        self._known = known
        self._vms = [vm for vm in site.problem.memory_mb if site.problem.targets[vm]]
        self._placement = ProblemPlacement(site.problem)
        start = _Point(frozenset(), frozenset())
        self._search: BestFirst[_Point, _Way] = BestFirst(start, self._estimate(start, (0, 0)), (0, 0))

    def run(self, deadline: Deadline) -> Outcome | None:
        """The best that there is, `proven`; None if it is too much to find out, or the engine moves VMs."""
        site, search, seen = self._site, self._search, list[_Point]()
        large = (
            len(site.problem.hosts) ** len(self._vms) > _MOST_PLACEMENTS or len(self._vms) > _MOST_PLACEMENTS
        )
        if large or site.by_engine or site.problem.guessed:
            return None
        while (point := search.pop_next()) is not None:
            if self._known.merit[:2] == (0, False) and search.rank >= self._known.merit[2:]:
                return replace(self._known, proven=True)
            if len(point.done) == len(site.asked):
                return self._outcome(point)
            seen.append(point)
            if len(seen) > _MOST_POINTS or deadline.over:
                return None
            for way, after, cost in self._onwards(point):
                if search.cheaper(after, cost):
                    search.add(point, way, after, cost, self._estimate(after, cost))
        return self._outcome(min(seen, key=lambda one: (-len(one.done), *search.cost(one))))

    def _estimate(self, point: _Point, cost: Cost) -> Cost:
        """What a maintenance that goes through a point costs at least."""
        rounds, migrations = cost
        undone = {*self._site.asked} - point.done
        where = {**self._site.problem.where, **dict(point.places)}
        return (
            rounds + _ceil(len(undone), self._site.options.at_once),
            migrations + sum(where[vm] in undone for vm in self._vms),
        )

    def _onwards(self, point: _Point) -> Iterator[tuple[_Way, _Point, Cost]]:
        site, placement = self._site, self._placement
        rounds, migrations = self._search.cost(point)
        put_at(placement, point.places)
        for hosts in self._waves(point):
            yield hosts, _Point(point.places, point.done.union(hosts)), (rounds + 1, migrations)
        away = {host for host in site.waiting if host not in point.done or not site.returns(host)}
        targets = [host for host in site.problem.hosts if host not in site.never | away]
        for move in legal_moves(placement, self._vms, targets):
            after = places_after(site.problem, point.places, move)
            yield move, _Point(after, point.done), (rounds, migrations + len(move.vms))

    def _waves(self, point: _Point) -> Iterator[tuple[str, ...]]:
        """Hosts that may be out together now."""
        site = self._site
        undone = [host for host in site.asked if host not in point.done]
        empty = [host for host in undone if {*self._placement.on(host)} <= {*site.stopped_on(host)}]
        for size in range(1, min(site.options.at_once, len(empty)) + 1):
            for hosts in combinations(empty, size):
                rank = max(map(site.rank, hosts))
                early = all(site.rank(host) >= rank or host in hosts for host in undone)
                if early and site.survives(self._placement.moved, hosts, point.done):
                    yield tuple(sorted(hosts, key=site.rank))

    def _outcome(self, point: _Point) -> Outcome:
        waves: list[Wave] = []
        moves: list[Move] = []
        for way in self._search.steps_to(point):
            if isinstance(way, Move):
                moves.append(way)
            else:
                waves.append(Wave(way, tuple(moves)))
                moves = []
        left = tuple(host for host in self._site.asked if host not in point.done)
        return Outcome(tuple(waves), left, proven=True)


#: This many hosts are tried as the first one.
_MOST_LEADS = 10
#: The share of the time for that; the rest is for a search through all, where there is little to go through.
_DRAINING_SHARE = 0.7


def best_outcome(site: Site, deadline: Deadline) -> Outcome:
    """What leaves the fewest hosts, then has the fewest rounds, then the fewest migrations.

    The first that meets all bounds ends it.
    """
    rounds = rounds_at_least(site)

    def meets_bounds(outcome: Outcome) -> bool:
        blocked, early, waves, migrations = outcome.merit
        short = not (blocked or early) and waves <= rounds
        return short and migrations <= migrations_at_least(site, rounds)

    by_number = sorted(site.asked, key=lambda host: (len(site.on(host)), host))
    best = Draining(site, by_number, None, rounds).run()
    draining = deadline.within(_DRAINING_SHARE)
    others = chain([(by_number[::-1], None)], zip(repeat(by_number), by_number[:_MOST_LEADS]))
    for order, lead in others:
        if draining.over or meets_bounds(best):
            break
        for target in sorted({rounds, len(best.waves)}):
            outcome = Draining(site, order, lead, target, draining).run()
            best = min(best, outcome, key=lambda one: one.merit)
    if meets_bounds(best):
        return replace(best, proven=not site.problem.guessed)
    return min(_Search(site, best).run(deadline) or best, best, key=lambda one: one.merit)
