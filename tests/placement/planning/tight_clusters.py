"""Draws nearly full clusters: some that can be repaired for certain, and some in which all is tangled."""

from __future__ import annotations

import random
from collections.abc import Mapping

from ovirt_placement.model import Snapshot
from tests.builders import APART, TOGETHER, group, host, snapshot, vm
from tests.placement.planning.ordering.oracle import Cluster, Request


def scrambled(seed: int, *, hosts: int = 8, vms: int = 60, groups: int = 25, tries: int = 150) -> Snapshot:
    """From an end in which every rule is satisfied backwards, by migrations whose way back is legal."""
    dice = random.Random(seed)
    host_ids = [f"h{number:02}" for number in range(hosts)]
    sizes_mb = {f"v{number:02}": 1024 * dice.choice([2, 4, 8, 16, 32]) for number in range(vms)}
    where = {name: dice.choice(host_ids) for name in sizes_mb}
    taken_mb = _taken(where, sizes_mb)
    total_mb = {name: taken_mb.get(name, 0) + 1024 * dice.choice([0, 2, 3, 5, 8, 12]) for name in host_ids}
    rules = [_kept(f"g{number}", where, dice) for number in range(groups)]

    def state(where: Mapping[str, str]) -> Snapshot:
        taken_mb = _taken(where, sizes_mb)
        return snapshot(
            *(
                host(name, memory_mb=total, free_mb=total - taken_mb.get(name, 0))
                for name, total in total_mb.items()
            ),
            *(vm(name, where[name], needs_mb=size, usage_cpu_percent=0) for name, size in sizes_mb.items()),
            *rules,
        )

    for _ in range(tries):
        name, source = dice.choice(sorted(where)), dice.choice(host_ids)
        before = where | {name: source}
        if source == where[name] or _taken(before, sizes_mb)[source] > total_mb[source]:
            continue
        cluster = Cluster(state(before))
        worse = cluster.violated(before) - cluster.violated(where)
        back = Request((name,), where[name])
        if (worse > 0 or (worse == 0 and dice.random() < 0.5)) and cluster.why_not(before, {}, back) is None:
            where = before
    return state(where)


def _kept(name: str, where: Mapping[str, str], dice: random.Random) -> object:
    """A satisfied rule there."""
    first = dice.choice(sorted(where))
    together = [one for one in sorted(where) if where[one] == where[first] and one != first]
    elsewhere = [one for one in sorted(where) if where[one] != where[first]]
    kind = dice.randrange(4)
    if kind < 2 and elsewhere:
        return group(name, APART, f"{first} {dice.choice(elsewhere)}")
    if kind == 2 and together:
        return group(name, TOGETHER, f"{first} {dice.choice(together)}")
    return group(name, vms=first, hosts_rule=TOGETHER, hosts=f"{where[first]}")


def tangled(seed: int) -> Snapshot:
    """Six hosts that are 95 % full of VMs of all sizes, with hard rules drawn without any regard to that."""
    dice = random.Random(seed)
    host_ids = [f"h{number:02}" for number in range(6)]
    sizes_mb = {f"v{number:03}": 1024 * dice.choice([2, 4, 8, 16, 32]) for number in range(40)}
    total_mb = round(sum(sizes_mb.values()) / 0.95 / 6)
    where: dict[str, str] = {}
    taken_mb = dict.fromkeys(host_ids, 0)
    for name in sorted(sizes_mb, key=lambda name: -sizes_mb[name]):
        fitting = [one for one in host_ids if taken_mb[one] + sizes_mb[name] <= total_mb]
        where[name] = dice.choice(fitting or host_ids)
        taken_mb[where[name]] += sizes_mb[name]
    return snapshot(
        *(
            host(name, memory_mb=max(total_mb, taken), free_mb=max(0, total_mb - taken))
            for name, taken in taken_mb.items()
        ),
        *(vm(name, where[name], needs_mb=size, usage_cpu_percent=0) for name, size in sizes_mb.items()),
        *(_drawn(f"g{number}", sorted(sizes_mb), host_ids, dice) for number in range(7)),
    )


def _drawn(name: str, vms: list[str], hosts: list[str], dice: random.Random) -> object:
    kind, members = dice.random(), dice.sample(vms, dice.randint(2, 4))
    if kind < 0.45:
        return group(name, APART, " ".join(members))
    if kind < 0.65:
        return group(name, TOGETHER, " ".join(members[:2]))
    listed = " ".join(dice.sample(hosts, 3))
    return group(name, vms=" ".join(members[:2]), hosts_rule=dice.choice([TOGETHER, APART]), hosts=listed)


def _taken(where: Mapping[str, str], sizes_mb: Mapping[str, int]) -> dict[str, int]:
    taken: dict[str, int] = {}
    for name, host_id in where.items():
        taken[host_id] = taken.get(host_id, 0) + sizes_mb[name]
    return taken
