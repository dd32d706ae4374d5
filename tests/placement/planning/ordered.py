"""Moves in a legal sequence, each with those that it waits for; and a repair that is as large as any."""

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.dependencies import waits
from ovirt_placement.planning.plan import Deadline, Step
from ovirt_placement.planning.problem.placement import placement_after
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.sequence import sequence
from ovirt_placement.planning.steps import step_seconds
from tests.builders import APART, TOGETHER, group, host, snapshot, vm
from tests.placement.planning.brute_force import Assignment, Cluster, Request, Where


class OrderedMove(NamedTuple):
    move: Move
    after: tuple[int, ...]


class Order(NamedTuple):
    moves: tuple[OrderedMove, ...]
    #: VMs that do not get to their hosts.
    stuck: frozenset[str]


def order(problem: Problem, where: Mapping[str, str], deadline: Deadline) -> Order:
    """The moves that bring VMs to their hosts."""
    found = sequence(problem, where, deadline)
    end = placement_after(problem, found)
    stuck = frozenset(vm for vm, host in where.items() if end.where(vm) != host)
    return Order(tuple(map(OrderedMove, found, waits(problem, found))), stuck)


MOVES = 238
#: Hosts that they leave.
CROWDED = 20


def repair(seed: int, hosts: int = 500, vms: int = 10_000) -> tuple[Snapshot, dict[str, str]]:
    """A cluster where 238 pairs share their host, on few hosts, and where one VM of each is to go.

    Some go where there is room from the start on, others where there will be once another has left.
    """
    chance = random.Random(seed)
    names = [f"h{number:03}" for number in range(hosts)]
    roomy = chance.sample(names[CROWDED:], MOVES)
    at = {f"v{number:05}": chance.choice(names) for number in range(vms - 2 * MOVES)}
    where: dict[str, str] = {}
    groups, sizes = [], {}
    before = ""
    for number in range(MOVES):
        leaver, stayer = f"a{number:03}", f"b{number:03}"
        at[leaver] = at[stayer] = chance.choice(names[:CROWDED])
        sizes[leaver] = chance.choice([2048, 4096, 8192, 16384])
        groups.append(group(f"g{number:03}", APART, f"{leaver} {stayer}"))
        follows = number % 3 and at[before] != at[leaver] and sizes[leaver] <= sizes[before]
        where[leaver] = at[before] if follows else roomy[number]
        before = leaver
    machines = (
        vm(
            one,
            its_host,
            needs_mb=sizes.get(one) or chance.choice([1024, 2048, 4096, 8192, 16384]),
            usage_mem_percent=chance.randint(20, 95),
        )
        for one, its_host in at.items()
    )
    free = dict.fromkeys(roomy, 65536)
    places = (host(name, free_mb=free.get(name, 0), memory_mb=1024 * 1024) for name in names)
    return snapshot(*places, *machines, *groups), where


def steps_of(state: Snapshot, found: Order) -> list[Step]:
    """As a plan has them."""
    at = {one.id: one.host or "" for one in state.vms}
    steps = []
    for vms, target, after in ((one.move.vms, one.move.host, one.after) for one in found.moves):
        seconds, sources = step_seconds([state.vm_by_id[one] for one in vms]), tuple(at[one] for one in vms)
        steps.append(Step(vms, sources, target, groups=(), repairs=(), after=after, seconds=seconds))
        at |= dict.fromkeys(vms, target)
    return steps


def drawn(chance: random.Random) -> Snapshot:
    """A tight cluster with hard groups of all kinds, some of which are violated, some in contradiction.

    One VM is down, and ties those together of whose groups it is.
    """
    return of_size(chance, chance.randint(2, 4), chance.randint(3, 5), chance.randint(0, 3), ["down"])


def of_size(
    chance: random.Random,
    count_of_hosts: int,
    count_of_vms: int,
    count_of_groups: int,
    down: Sequence[str] = (),
) -> Snapshot:
    hosts = [f"h{number}" for number in range(1, count_of_hosts + 1)]
    vms = [f"v{number}" for number in range(1, count_of_vms + 1)]
    groups = []
    for number in range(count_of_groups):
        members = " ".join(chance.sample([*vms, *down], chance.randint(2, min(3, len(vms)))))
        listed = " ".join(chance.sample(hosts, chance.randint(1, len(hosts) - 1)))
        kind = chance.randrange(5)
        if kind < 2:
            groups.append(group(f"g{number}", APART, members))
        elif kind < 4:
            groups.append(group(f"g{number}", TOGETHER, members))
        else:
            rule = chance.choice([TOGETHER, APART])
            groups.append(group(f"g{number}", vms=members, hosts_rule=rule, hosts=listed))
    return snapshot(
        *(host(one, free_mb=1024 * chance.choice([0, 0, 1, 2, 3, 6])) for one in hosts),
        *(
            vm(
                one,
                chance.choice(hosts),
                needs_mb=1024 * chance.choice([1, 1, 2, 3]),
                migratable=chance.random() < 0.9,
            )
            for one in vms
        ),
        *map(vm, down),
        *groups,
    )


def reachable_end(cluster: Cluster, ways: dict[Assignment, int], chance: random.Random) -> Where:
    """VMs that end elsewhere, as far as can be; where there is such an end, one that takes detours."""

    def moved(state: Assignment) -> Where:
        return {vm: host for vm, host in cluster.named(state).items() if host != cluster.start[vm]}

    ends = sorted(ways)
    winding = [end for end in ends if ways[end] > len(moved(end))]
    if winding and chance.random() < 0.7:
        return moved(chance.choice(winding))
    return max((moved(chance.choice(ends)) for _ in range(3)), key=len)


def walked_end(cluster: Cluster, chance: random.Random, tries: int) -> Where:
    """VMs that end elsewhere after those of some random migrations that are legal, and of groups at once."""
    where = dict(cluster.start)
    for _ in range(tries):
        vm = chance.choice(sorted(where))
        tied = next((tuple(sorted(one)) for one in cluster.together if vm in one), (vm,))
        request = Request(chance.choice([(vm,), tied]), chance.choice(cluster.hosts))
        if cluster.may_begin(where, {}, request):
            where |= dict.fromkeys(request.vms, request.host)
    return {vm: host for vm, host in where.items() if host != cluster.start[vm]}
