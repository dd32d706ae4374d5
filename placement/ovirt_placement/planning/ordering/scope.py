"""Which VMs and hosts a search for detours looks at: all in a small cluster, else those that may help."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ovirt_placement.planning.problem.placement import ProblemPlacement

#: A cluster with no more VMs that may move, and no more hosts, is searched as a whole.
_FEW_VMS = 9
_FEW_HOSTS = 6
#: In larger ones: how many VMs of a full host may step aside, and how many hosts take VMs that do.
_BYSTANDERS = 3
_SPARE_HOSTS = 3
_NEARLY_SPARE_HOSTS = 2


@dataclass(frozen=True, slots=True)
class OrderingScope:
    """What may be moved where, straight moves aside."""

    vms: tuple[str, ...]
    hosts: Mapping[str, tuple[str, ...]]
    #: Hosts that VMs may have to leave for others to come; elsewhere they are in nobody's way at first.
    leave: frozenset[str]
    #: Nothing that could be moved was left out.
    complete: bool


def whole(placement: ProblemPlacement) -> OrderingScope | None:
    """All that may move, if that is little."""
    problem = placement.problem
    if len(problem.hosts) > _FEW_HOSTS or len(problem.memory_mb) > 3 * _FEW_VMS:
        return None
    vms = tuple(sorted(vm for vm in problem.memory_mb if problem.targets[vm]))
    if len(vms) > _FEW_VMS:
        return None
    leave = frozenset((*problem.hosts, *problem.where.values()))
    return OrderingScope(vms, dict.fromkeys(vms, problem.hosts), leave, complete=True)


def around(placement: ProblemPlacement, where: Mapping[str, str], stuck: Collection[str]) -> OrderingScope:
    """VMs that do not get to their hosts, those that could make room for them, and hosts to step aside to."""
    problem = placement.problem
    bound_for = {where[vm] for vm in stuck}
    near = bound_for | {placement.where(vm) for vm in stuck}
    leave = bound_for | {host for vm in stuck for host in _nearly_spare_hosts(placement, vm, near)}
    members = [peer for vm in sorted(stuck) for peer in _gathered(placement, vm)]
    vms = dict.fromkeys((*sorted(stuck), *members))
    for host in sorted(leave):
        coming = [vm for vm in stuck if where[vm] == host] if host in bound_for else stuck
        vms.update(dict.fromkeys(_bystanders(placement, host, coming, vms)))
    hosts = {}
    for vm in vms:
        peers = {placement.where(peer) for peer in _gathered(placement, vm)}
        nearby = [host for host in problem.hosts if host in leave | near | peers | {problem.where[vm]}]
        hosts[vm] = (*nearby, *_spare_hosts(placement, vm, near | leave))
    leave |= {placement.where(vm) for vm in members}
    return OrderingScope(tuple(vms), hosts, frozenset(leave), complete=False)


def _gathered(placement: ProblemPlacement, vm: str) -> tuple[str, ...]:
    """Those that a VM may have to move with, or to join."""
    goals = placement.problem.goals_of.get(vm, ())
    return tuple(peer for goal in goals if goal.hard and goal.gathers for peer in goal.vms if peer != vm)


def _bystanders(
    placement: ProblemPlacement, host: str, coming: Collection[str], known: Collection[str]
) -> list[str]:
    """VMs that may leave a full host: the smallest of those that make room alone, then the largest others."""
    problem = placement.problem
    needed_mb = min(problem.memory_mb[vm] for vm in coming) - placement.free_mb(host)
    here = [vm for vm in problem.on.get(host, ()) if placement.where(vm) == host]
    # Those that have arrived would have to come back.
    here += [vm for vm, present in placement.moved.items() if present == host]
    able = (vm for vm in here if needed_mb > 0 and vm not in known and vm in problem.memory_mb)
    found: list[str] = []
    for vm in sorted(able, key=lambda vm: (_use(problem.memory_mb[vm], needed_mb), vm)):
        if len(found) == _BYSTANDERS:
            break
        if problem.targets[vm]:
            found.append(vm)
    return found


def _use(memory_mb: int, needed_mb: int) -> tuple[bool, int]:
    return memory_mb < needed_mb, abs(memory_mb - needed_mb)


def _spare_hosts(placement: ProblemPlacement, vm: str, near: Collection[str]) -> list[str]:
    """Hosts out of the way that would take a VM now, those with the most room first."""
    problem = placement.problem
    found: list[str] = []
    for host in sorted(problem.hosts, key=lambda host: -placement.free_mb(host)):
        if len(found) == _SPARE_HOSTS or placement.free_mb(host) < problem.memory_mb[vm]:
            break
        if host not in near and placement.legal(vm, host):
            found.append(host)
    return found


def _nearly_spare_hosts(placement: ProblemPlacement, vm: str, near: Collection[str]) -> list[str]:
    """Where no host out of the way would take a VM: those that lack the least room for that."""
    if _spare_hosts(placement, vm, near):
        return []
    targets = placement.problem.targets[vm].difference(near, (placement.where(vm),))
    full = (host for host in targets if placement.free_mb(host) < placement.problem.memory_mb[vm])
    return sorted(full, key=lambda host: (-placement.free_mb(host), host))[:_NEARLY_SPARE_HOSTS]
