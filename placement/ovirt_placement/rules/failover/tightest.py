"""Looks for the sets of failing hosts that leave the least room: where a loss is, if there is one.

Each host that fails takes its own room away and brings VMs that need some. Counted in VMs of one size and
on the hosts that some of the VMs are restricted to, what a set leaves is a sum over its members, so the worst
set of any number is that of the worst members.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.blocks import bindings_of, block_of
from ovirt_placement.rules.failover.counting import Chosen
from ovirt_placement.rules.failover.protection import protected
from ovirt_placement.rules.failover.units import FailureUnit, failing_hosts
from ovirt_placement.rules.memory import required_mb
from ovirt_placement.rules.solving.problem import NOTHING

#: Sizes of VMs that are counted in, the largest ones; and sets of hosts that VMs are restricted to.
_MOST_SIZES = 6
_MOST_AREAS = 50
#: How many sets are looked for.
MOST_SETS = 40


class Scant(NamedTuple):
    """A set of units by number, and for how many more VMs that need this many MiB it leaves room, at most."""

    room_for: int
    memory_mb: int
    chosen: Chosen


def scantest(
    snapshot: Snapshot, hosts: Sequence[str], units: Sequence[FailureUnit], size: int
) -> list[Scant]:
    """The sets of this many units that leave the least room by some count, the worst first."""
    vms = protected(snapshot, hosts)
    needs = {vm: required_mb(snapshot.vm_by_id[vm]) for own in vms.values() for vm in own}
    areas = _areas(snapshot, frozenset(hosts), [*needs])
    found: dict[Chosen, Scant] = {}
    for area, inside in areas:
        sizes = sorted({needs[vm] for vm in inside} - {0}, reverse=True)[:_MOST_SIZES]
        for memory_mb in sizes:
            asking = {vm for vm in inside if needs[vm] >= memory_mb}
            up = [known for host in area if (known := snapshot.host_by_id[host]).up]
            room = {host.id: max(0, host.free_mb) // memory_mb for host in up}
            brings = {host: sum(vm in asking for vm in vms[host]) for host in hosts}
            costs = [sum(room.get(host, 0) + brings[host] for host in unit.hosts) for unit in units]
            bringing = {at for at, unit in enumerate(units) if any(brings[host] for host in unit.hosts)}
            for chosen in _worst(costs, bringing, size):
                failed = failing_hosts(units, chosen)
                left = sum(room.values()) - sum(room.get(host, 0) + brings[host] for host in failed)
                scant = Scant(left, memory_mb, chosen)
                found[chosen] = min(found.get(chosen, scant), scant)
    return sorted(found.values())[:MOST_SETS]


def _areas(
    snapshot: Snapshot, hosts: frozenset[str], vms: Sequence[str]
) -> Iterator[tuple[frozenset[str], list[str]]]:
    """Hosts that VMs are restricted to, the smallest first, and at last all; with the VMs inside of each."""
    own: dict[str, frozenset[str]] = {}
    for vm in vms:
        block = block_of(snapshot, (vm,), bindings_of(snapshot), NOTHING)
        own[vm] = (hosts if block.allowed is None else hosts & block.allowed) - block.forbidden
    areas = sorted(set(own.values()) - {hosts}, key=lambda area: (len(area), sorted(area)))[:_MOST_AREAS]
    for area in (*areas, hosts):
        yield area, [vm for vm in vms if own[vm] <= area]


def _worst(costs: Sequence[int], bringing: AbstractSet[int], size: int) -> Iterator[Chosen]:
    """The members that cost most; then each with the last one given for another.

    One of them at least must bring VMs: the others only take room away.
    """
    order = sorted(range(len(costs)), key=lambda number: (-costs[number], number))
    first, others = order[: size - 1], order[size - 1 :]
    next_bringing = [number for number in others if number in bringing][:1]
    for last in dict.fromkeys((*others[:4], *next_bringing)):
        if last in bringing or not bringing.isdisjoint(first):
            yield tuple(sorted((*first, last)))
