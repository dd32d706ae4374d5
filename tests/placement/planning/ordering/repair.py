"""A repair of the size of a large cluster: 500 hosts, 10,000 VMs, 238 of which must move."""

from __future__ import annotations

import random

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Step
from ovirt_placement.planning.verification import Pace, step_seconds
from tests.builders import APART, group, host, snapshot, vm
from tests.placement.planning.ordering.ordered import Order

MOVES = 238
#: Hosts that they leave.
CROWDED = 20


def repair(
    seed: int, hosts: int = 500, vms: int = 10_000, crowded: int = 40
) -> tuple[Snapshot, dict[str, str]]:
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


def steps_of(state: Snapshot, found: Order, pace: Pace) -> list[Step]:
    """As a plan has them."""
    at = {one.id: one.host or "" for one in state.vms}
    steps = []
    for one in found.moves:
        machines = [state.vm_by_id[moving] for moving in one.move.vms]
        sources = tuple(at[moving] for moving in one.move.vms)
        steps.append(
            Step(
                vms=one.move.vms,
                sources=sources,
                target=one.move.host,
                groups=(),
                repairs=(),
                after=one.after,
                seconds=step_seconds(machines, pace),
            )
        )
        at |= dict.fromkeys(one.move.vms, one.move.host)
    return steps
