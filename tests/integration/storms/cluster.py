"""The cluster of a storm: ten unequal hosts, and VMs in groups of all kinds that are to start at once."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import cycle, islice, pairwise

from ovirt_placement.model import AffinityGroup, AffinityRule, Host, Snapshot
from tests import builders as build

HOSTS = 10
CLUSTER_NAME = "storm"
_MEMORY_MB = 262_144


class Kind(Enum):
    """What binds VMs that start: the rule between them, None of a chain and of those that nothing binds."""

    CHAIN = None
    SOFT_APART = build.SOFT_APART
    HARD_TOGETHER = build.TOGETHER
    SOFT_TOGETHER = build.SOFT_TOGETHER
    HARD_APART = build.APART


#: Of all VMs that start, one in this many is in one long chain.
_LONG_CHAIN_SHARE = 6
#: How many VMs of each kind start together.
_SIZES = {
    Kind.CHAIN: 2,
    Kind.SOFT_APART: 4,
    Kind.HARD_TOGETHER: 3,
    Kind.SOFT_TOGETHER: 3,
    Kind.HARD_APART: 5,
}


@dataclass(frozen=True)
class Storm:
    """A cluster, the VMs that start in the order in which they are asked for, and what must hold of them."""

    state: Snapshot
    starts: tuple[str, ...]
    #: Those of each hard chain that start, and must end on one host; the links between them are down.
    chains: tuple[tuple[str, ...], ...]
    together: tuple[tuple[str, ...], ...]
    apart: tuple[tuple[str, ...], ...]

    def torn_chains(self, hosts: Mapping[str, str | None]) -> list[int]:
        """On how many hosts each chain is that is on several."""
        return [count for chain in self.chains if (count := len(_used(chain, hosts))) > 1]

    def violated(self, hosts: Mapping[str, str | None]) -> int:
        """How many hard groups are violated, of which the engine itself knows all members."""
        torn = sum(len(_used(group, hosts)) > 1 for group in self.together)
        placed = [[hosts[vm] for vm in group if hosts[vm]] for group in self.apart]
        return torn + sum(len(set(found)) < len(found) for found in placed)


def _used(vms: tuple[str, ...], hosts: Mapping[str, str | None]) -> set[str]:
    return {host for vm in vms if (host := hosts[vm])}


def draw(starts: int, seed: int = 1) -> Storm:
    """Draw a cluster in which this many VMs start, all of them lawfully wherever the others are."""
    dice = random.Random(f"{starts} {seed}")

    def new() -> str:
        return str(uuid.UUID(int=dice.getrandbits(128)))

    vms = [new() for _ in range(starts)]
    bound = list(_bound(vms))
    chains = tuple(chain for kind, chain in bound if kind is Kind.CHAIN)
    linked = [_linked(chain, new) for chain in chains]
    groups = [group for kind, members in bound if kind.value for group in [_group(new, kind.value, members)]]
    groups += [_group(new, build.TOGETHER, pair) for chain in linked for pair in pairwise(chain)]
    down = {vm for chain in linked for vm in chain}.difference(vms)
    state = build.snapshot(
        build.cluster(name=CLUSTER_NAME),
        *(_host(new(), number) for number in range(HOSTS)),
        *map(build.vm, [*vms, *sorted(down)]),
        *groups,
    )
    return Storm(
        state,
        tuple(dice.sample(vms, len(vms))),
        chains,
        tuple(members for kind, members in bound if kind is Kind.HARD_TOGETHER),
        tuple(members for kind, members in bound if kind is Kind.HARD_APART),
    )


def _bound(vms: list[str]) -> Iterator[tuple[Kind, tuple[str, ...]]]:
    """Divide the VMs into one long chain, and the kinds in turn; what is left over is bound by nothing."""
    left = iter(vms)
    yield Kind.CHAIN, tuple(islice(left, max(2, len(vms) // _LONG_CHAIN_SHARE)))
    for kind in cycle(Kind):
        members = tuple(islice(left, _SIZES[kind]))
        if len(members) < _SIZES[kind]:
            return
        yield kind, members


def _linked(chain: tuple[str, ...], new: Callable[[], str]) -> list[str]:
    """Put two VMs, which stay down, between any two of a chain."""
    return [vm for member in chain for vm in (member, new(), new())][:-2]


def _group(new: Callable[[], str], rule: AffinityRule, members: tuple[str, ...]) -> AffinityGroup:
    group = new()
    return build.group(group, rule, " ".join(members))


def _host(host: str, number: int) -> Host:
    """The first one has twice the memory, and is busier; between the others each start tips the scales."""
    memory = _MEMORY_MB * (2 if number == 0 else 1)
    busy = 40 if number == 0 else 20
    return build.host(host, memory_mb=memory, free_mb=memory - 4096, cpu_percent=busy, cores=64)
