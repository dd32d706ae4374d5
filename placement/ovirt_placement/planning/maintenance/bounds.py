"""What no plan of maintenance can beat: rounds, by hosts, memory and rules; migrations for these."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ovirt_placement.planning.maintenance.reserve import Reserve
from ovirt_placement.planning.maintenance.site import Site
from ovirt_placement.planning.problem.goal import Goal

#: Of VMs on other hosts this many are thought of as stepping aside for those that leave.
_MOST_EVICTED = 50


def rounds_at_least(site: Site, reserve: Reserve) -> int:
    """Rounds that any plan has in which all hosts are maintained."""
    if not site.asked:
        return 0
    at_least = max(1, _ceil(len(site.asked), site.options.at_once), _by_memory(site, reserve))
    for hosts, needed in _places(site):
        at_least = max(at_least, _by_places(site, hosts, needed))
    return at_least


def migrations_at_least(site: Site, rounds: int) -> int:
    """Migrations that any plan has that takes this many rounds: all VMs leave, some again."""
    movable = {host: [vm.id for vm in site.on(host) if site.problem.targets[vm.id]] for host in site.asked}
    smallest = max(1, len(site.asked) - (rounds - 1) * site.options.at_once)
    again = max(_again_by_memory(site, movable, smallest), _again_by_targets(site, movable))
    return sum(map(len, movable.values())) + again


def _by_memory(site: Site, reserve: Reserve) -> int:
    """Hosts that are out together leave room for all VMs, and for those that a failure takes down."""
    free = sum(site.problem.free_mb.values()) - _kept_free(site, reserve)
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


def _kept_free(site: Site, reserve: Reserve) -> int:
    """Memory that is free wherever all failures are survived: on average over those that fail."""
    if reserve.start is None or reserve.start.sets or reserve.start.unknown:
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
    for count in range(len(evicted) + 1):
        room = free + sum(evicted[:count])
        by_all = leaving - _fitting(every, room)
        by_each = sorted(len(movable[host]) - _fitting(outwards[host], room) for host in first)
        again = 2 * count + max(0, by_all, sum(by_each[:smallest]))
        best = again if best is None else min(best, again)
    return best or 0


def _first(site: Site, hosts: Collection[str], count: int) -> list[str]:
    """Hosts of which the first wave that has any of `hosts` has this many: higher ranks come later."""
    lowest = min((site.rank(host) for host in hosts), default=0)
    early = [host for host in hosts if site.rank(host) == lowest]
    return early if len(early) >= count else list(hosts)


def _fitting(sizes: Sequence[int], room: int) -> int:
    """How many of these fit at most, the smallest first."""
    for count, size in enumerate(sizes):
        room -= size
        if room < 0:
            return count
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
