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
_Action = Move | tuple[str, ...]


def _searched(site: Site, known: Outcome, deadline: Deadline) -> Outcome | None:
    """The best that there is, `proven`; None if it is too much to find out, or the engine moves VMs.

    By the cheapest way to each point, those first that may end cheapest; `known` was found otherwise.
    """
    problem = site.problem
    vms = [vm for vm in problem.memory_mb if problem.targets[vm]]
    large = len(vms) > _MOST_PLACEMENTS or len(problem.hosts) ** len(vms) > _MOST_PLACEMENTS
    if large or site.by_engine or problem.guessed:
        return None
    placement, start, seen = ProblemPlacement(problem), _Point(Places(), frozenset()), list[_Point]()
    search: BestFirst[_Point, _Action] = BestFirst(start, _at_least(site, vms, start, (0, 0)), (0, 0))
    while (point := search.pop_next()) is not None:
        if known.merit[:2] == (0, False) and search.rank >= known.merit[2:]:
            return replace(known, proven=True)
        if len(point.done) == len(site.asked):
            return _outcome(site, point, search)
        seen.append(point)
        if len(seen) > _MOST_POINTS or deadline.over:
            return None
        for action, after, (rounds, migrations) in _actions_from(site, placement, vms, point):
            cost = search.cost(point)[0] + rounds, search.cost(point)[1] + migrations
            if search.cheaper(after, cost):
                search.add(point, action, after, cost, _at_least(site, vms, after, cost))
    return _outcome(site, min(seen, key=lambda one: (-len(one.done), *search.cost(one))), search)


def _at_least(site: Site, vms: Iterable[str], point: _Point, cost: Cost) -> Cost:
    """What a maintenance that goes through a point costs at least."""
    undone, where = {*site.asked} - point.done, {**site.problem.where, **dict(point.places)}
    rounds = _ceil(len(undone), site.options.at_once)
    return cost[0] + rounds, cost[1] + sum(where[vm] in undone for vm in vms)


def _actions_from(
    site: Site, placement: ProblemPlacement, vms: Sequence[str], point: _Point
) -> Iterator[tuple[_Action, _Point, Cost]]:
    """Hosts that may be out together now, and migrations; each with what it costs."""
    put_at(placement, point.places)
    undone = [host for host in site.asked if host not in point.done]
    empty = [host for host in undone if {*placement.on(host)} <= {*site.stopped_on(host)}]
    sizes = range(1, min(site.options.at_once, len(empty)) + 1)
    for hosts in chain.from_iterable(combinations(empty, size) for size in sizes):
        rank = max(map(site.rank, hosts))
        early = all(site.rank(host) >= rank or host in hosts for host in undone)
        if early and site.survives(placement.moved, hosts, point.done):
            in_order = tuple(sorted(hosts, key=site.rank))
            yield in_order, _Point(point.places, point.done.union(hosts)), (1, 0)
    away = {host for host in site.waiting if host not in point.done or not site.returns(host)}
    targets = [host for host in site.problem.hosts if host not in site.never | away]
    for move in legal_moves(placement, vms, targets):
        after = places_after(site.problem, point.places, move)
        yield move, _Point(after, point.done), (0, len(move.vms))


def _outcome(site: Site, end: _Point, search: BestFirst[_Point, _Action]) -> Outcome:
    waves, moves = list[Wave](), list[Move]()
    for action in search.steps_to(end):
        if isinstance(action, Move):
            moves.append(action)
        else:
            waves.append(Wave(action, tuple(moves)))
            moves = []
    return Outcome(tuple(waves), tuple(host for host in site.asked if host not in end.done), proven=True)


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
    return min(_searched(site, best, deadline) or best, best, key=lambda one: one.merit)
