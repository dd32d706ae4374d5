"""What the rules say to the VMs of a violated rule on each host that might repair it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from ovirt_placement.model import Host, Snapshot
from ovirt_placement.planning.legality import vetoes
from ovirt_placement.planning.obstacles import Obstacle, ObstacleKind
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.rules.listed import ENGINES_OWN
from ovirt_placement.rules.memory import required_mb
from ovirt_placement.rules.placement import SnapshotPlacement
from ovirt_placement.rules.reasons import Reason, ReasonKind

NOT_UP: Final = ReasonKind("host_not_up", "the host is {status}", veto=True)

#: VMs and hosts that are asked about.
_MOST_VMS = 8
_MOST_HOSTS = 12


def refusals(snapshot: Snapshot, problem: Problem, goal: Goal, free: Collection[str]) -> Iterator[Obstacle]:
    """Why hosts refuse those VMs that may move.

    Of a positive group: the hosts of its peers, and other hosts all together; else any host each VM.
    """
    offenders = goal.constraint.offenders(SnapshotPlacement(snapshot))
    vms = [vm for vm in sorted(offenders) if vm in free][:_MOST_VMS]
    gathers = goal.gathers
    there = {problem.where[vm] for vm in goal.vms}
    asked = sorted(snapshot.hosts_of_cluster.get(problem.cluster, ()), key=lambda one: (-one.free_mb, one.id))
    fitting = [host for host in asked if goal.right(host.id) and (not gathers or host.id in there)]
    for vm in vms:
        for host in fitting[:_MOST_HOSTS]:
            if host.id != problem.where[vm]:
                yield from _why_not(snapshot, (vm,), host, _EACH)
    if gathers and goal.hard and vms:
        for host in [host for host in asked if host.id not in there][:_MOST_HOSTS]:
            yield from _why_not(snapshot, goal.vms, host, _TOGETHER)


class _Kinds(NamedTuple):
    refused: ObstacleKind
    no_memory: ObstacleKind


_EACH = _Kinds(ObstacleKind.REFUSED, ObstacleKind.NO_MEMORY)
_TOGETHER = _Kinds(ObstacleKind.REFUSED_TOGETHER, ObstacleKind.NO_MEMORY_TOGETHER)


def _why_not(snapshot: Snapshot, vms: tuple[str, ...], host: Host, kinds: _Kinds) -> Iterator[Obstacle]:
    if not host.up:
        yield Obstacle(kinds.refused, vms, (host.id,), reasons=(Reason(NOT_UP, status=host.status),))
        return
    found = list(vetoes(snapshot, host.cluster, vms, host.id))
    ours = [(rule, reason) for rule, reason in found if rule not in ENGINES_OWN]
    for rule, reason in ours or found:
        if not rule.amounts:
            yield Obstacle(kinds.refused, vms, (host.id,), reasons=(reason,))
    if any(rule.amounts for rule, _ in found):
        needed = sum(required_mb(snapshot.vm_by_id[vm]) for vm in vms)
        yield Obstacle(kinds.no_memory, vms, (host.id,), needed=needed, available=host.free_mb)
