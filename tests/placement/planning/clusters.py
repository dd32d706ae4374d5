"""Draws clusters small enough for brute force, with rules of every family, some against each other."""

import random
from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from ovirt_placement.model import AffinityRule, Snapshot
from tests.builders import (
    APART,
    DISABLED,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    Part,
    cluster,
    group,
    host,
    label,
    snapshot,
    vm,
)
from tests.placement.planning.brute_force import Cluster, Request

_RULES = st.sampled_from([TOGETHER, APART, SOFT_TOGETHER, SOFT_APART])
_TYING = st.sampled_from([TOGETHER, TOGETHER, TOGETHER, APART])


@st.composite
def tiny_clusters(
    draw: st.DrawFn, *, crowds: bool = False, tied: bool = False, most_placements: int = 2_000
) -> Snapshot:
    """Up to five hosts and eight VMs, of which as many can move as brute force bears.

    With `crowds`, most VMs are on one host, and a hard group wants some of them apart. With `tied`, many are
    down, and most groups hard positive ones, so that VMs that are down tie others together.
    """
    hosts = [f"h{number}" for number in range(draw(st.integers(2, 5)))]
    names = [f"v{number}" for number in range(draw(st.integers(2, 8)))]
    old = draw(st.integers(0, 3)) == 0
    parts: list[Part] = [cluster(compatibility="4.3" if old else "4.7")]
    status = st.sampled_from(
        ["up", "up", "up", "maintenance", "non_responsive", "preparing_for_maintenance", "non_operational"]
    )
    for number, name in enumerate(hosts):
        free_mb = draw(st.sampled_from([0, 1024, 2048, 4096, 8192]))
        parts.append(host(name, free_mb=free_mb, status=draw(status) if number == len(hosts) - 1 else "up"))
    placements = 1
    for name in names:
        moves = placements * len(hosts) <= most_placements and draw(st.integers(0, 7)) > 0
        placements *= len(hosts) if moves else 1
        pinned = draw(st.integers(0, 9)) == 0
        parts.append(
            vm(
                name,
                draw(st.sampled_from([*hosts, *hosts[:1] * (9 if crowds else 1), *[None] * (1 + tied)])),
                needs_mb=draw(st.sampled_from([1024, 1024, 2048, 4096])),
                usage_cpu_percent=0,
                migratable=moves,
                pinned_hosts=(draw(st.sampled_from(hosts)),) if pinned else (),
            )
        )
    members = st.lists(st.sampled_from(names), min_size=2, max_size=4, unique=True)
    listed = st.lists(st.sampled_from(hosts), min_size=1, max_size=3, unique=True)
    for number in range(draw(st.integers(1, 5))):
        of_hosts = draw(st.integers(0, 2)) == 0
        parts.append(
            group(
                f"g{number}",
                DISABLED if of_hosts else draw(_TYING if tied else _RULES),
                " ".join(draw(members)),
                hosts_rule=draw(_RULES) if of_hosts else DISABLED,
                hosts=" ".join(draw(listed)) if of_hosts else "",
                priority=draw(st.sampled_from([1.0, 1.0, 5.0])),
                vm_labels=("l",) if draw(st.integers(0, 7)) == 0 else (),
                host_labels=("l",) if of_hosts and draw(st.integers(0, 7)) == 0 else (),
            )
        )
    if crowds:
        apart = draw(st.lists(st.sampled_from(names), min_size=2, max_size=6, unique=True))
        parts.append(group("crowd", APART, " ".join(apart)))
    parts.append(label("l", " ".join(draw(members)), " ".join(draw(listed)), implicit=draw(st.booleans())))
    return snapshot(*parts)


_SIZES_MB = (1024, 1024, 2048, 4096)


def drawn(seed: int, *, hosts: int = 4, vms: int = 6, groups: int = 4) -> Snapshot:
    """Up to this many hosts, VMs and groups."""
    dice = random.Random(seed)
    host_ids = [f"h{number}" for number in range(dice.randint(2, hosts))]
    vm_ids = [f"v{number}" for number in range(dice.randint(2, vms))]
    return snapshot(
        *(host(name, free_mb=dice.choice((0, 1024, 2048, 8192, 8192))) for name in host_ids),
        *(
            vm(
                name,
                dice.choice(host_ids),
                needs_mb=dice.choice(_SIZES_MB),
                usage_cpu_percent=None,
                migratable=dice.random() < 0.9,
            )
            for name in vm_ids
        ),
        *(_group(f"g{number}", vm_ids, host_ids, dice) for number in range(dice.randint(1, groups))),
    )


def _group(name: str, vms: Sequence[str], hosts: Sequence[str], dice: random.Random) -> object:
    members = " ".join(dice.sample(vms, dice.randint(2, min(4, len(vms)))))
    rule = AffinityRule(enabled=True, positive=dice.random() < 0.5, enforcing=dice.random() < 0.6)
    priority = dice.choice((1.0, 2.0, 5.0))
    if dice.random() < 0.3:
        listed = " ".join(dice.sample(hosts, dice.randint(1, len(hosts))))
        return group(name, DISABLED, members, hosts_rule=rule, hosts=listed, priority=priority)
    return group(name, rule, members, priority=priority)


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
        if (worse > 0 or (worse == 0 and dice.random() < 0.5)) and cluster.may_begin(before, {}, back):
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
