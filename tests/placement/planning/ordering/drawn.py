"""Random clusters of which an end is known that legal migrations reach."""

from __future__ import annotations

import random

from ovirt_placement.model import Snapshot
from tests.builders import APART, TOGETHER, group, host, snapshot, vm
from tests.placement.planning.brute_force import Assignment
from tests.placement.planning.ordering.oracle import Cluster, Request, Where


def drawn(chance: random.Random) -> Snapshot:
    """A tight cluster with hard groups of all kinds, some of which are violated, some in contradiction."""
    return of_size(chance, chance.randint(2, 4), chance.randint(3, 5), chance.randint(0, 3))


def of_size(chance: random.Random, count_of_hosts: int, count_of_vms: int, count_of_groups: int) -> Snapshot:
    hosts = [f"h{number}" for number in range(1, count_of_hosts + 1)]
    vms = [f"v{number}" for number in range(1, count_of_vms + 1)]
    groups = []
    for number in range(count_of_groups):
        members = " ".join(chance.sample(vms, chance.randint(2, min(3, len(vms)))))
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
        if cluster.why_not(where, {}, request) is None:
            where |= dict.fromkeys(request.vms, request.host)
    return {vm: host for vm, host in where.items() if host != cluster.start[vm]}
