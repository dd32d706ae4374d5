"""Tries every order of starts and every host, where what a start learns depends on those before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules.solving.budget import Budget
from ovirt_placement.rules.world import World

#: VMs that have started, each with its host, in order.
Starts = tuple[tuple[str, str], ...]
#: Of VMs that are left, those that may be next; all of them unless there is an order.
Ready = Callable[[Sequence[str]], Sequence[str]]


class Tried(Record, frozen=True):
    """The most VMs that could be started one after the other, and those that are left."""

    homes: dict[str, str]
    unplaced: tuple[str, ...]


def try_all(
    state: Snapshot,
    vms: Sequence[str],
    accepted: Callable[[Snapshot, str], Sequence[str]],
    closed_for_good: Callable[[str], bool],
    budget: Budget,
    ready: Ready = tuple,
) -> Tried:
    """Start the VMs in some order, each on a host that is accepted then; every possibility counts.

    Only those may be next that are `ready` before all others that are left. If not all can start, as many as
    could go first, and then those that cannot start in their turn are left out.

    `closed_for_good` says of a VM that hosts which are not accepted now never will be. Raises
    `BudgetSpentError`; each start takes as many steps as the state has VMs and hosts.
    """
    size = len(state.vms) + len(state.hosts)
    waiting: list[tuple[Starts, Snapshot]] = [((), state)]
    seen: set[frozenset[tuple[str, str]]] = set()
    best: Starts = ()
    while waiting and len(best) < len(vms):
        starts, before = waiting.pop()
        if frozenset(starts) in seen:
            continue
        seen.add(frozenset(starts))
        budget.spend(size)
        now = World(before).starting(*starts[-1]).snapshot if starts else before
        best = max(best, starts, key=len)
        left = [vm for vm in vms if vm not in dict(starts)]
        waiting += [((*starts, start), now) for start in _next(now, left, accepted, closed_for_good, ready)]
    return _leaving_out(state, vms, dict(best), accepted, ready)


def _leaving_out(
    state: Snapshot,
    vms: Sequence[str],
    homes: dict[str, str],
    accepted: Callable[[Snapshot, str], Sequence[str]],
    ready: Ready,
) -> Tried:
    """Go on after some starts, without those that no host accepts when it is their turn."""
    for vm, home in homes.items():
        state = World(state).starting(vm, home).snapshot
    left, unplaced = [vm for vm in vms if vm not in homes], []
    while left:
        vm = ready(left)[0]
        left.remove(vm)
        if hosts := accepted(state, vm):
            homes[vm] = hosts[0]
            state = World(state).starting(vm, hosts[0]).snapshot
        else:
            unplaced.append(vm)
    return Tried(homes, tuple(vm for vm in vms if vm in unplaced))


def _next(
    state: Snapshot,
    left: Sequence[str],
    accepted: Callable[[Snapshot, str], Sequence[str]],
    closed_for_good: Callable[[str], bool],
    ready: Ready,
) -> Iterator[tuple[str, str]]:
    """What can be started now, the best try last; nothing if one of the VMs never can be any more."""
    hosts = {vm: accepted(state, vm) for vm in left}
    if any(not hosts[vm] and closed_for_good(vm) for vm in left):
        return
    for vm in reversed(ready(left)):
        for host in reversed(hosts[vm]):
            yield vm, host
