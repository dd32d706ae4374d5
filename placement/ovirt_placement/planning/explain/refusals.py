"""What the rules say to the VMs of a broken rule on each host that might repair it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ovirt_placement.model import Host, Snapshot
from ovirt_placement.model.names import host_name, vm_name
from ovirt_placement.planning.legality import vetoes
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.rules.catalogue import ENGINES_OWN
from ovirt_placement.rules.memory import required_mb
from ovirt_placement.rules.placement import SnapshotPlacement
from ovirt_placement.rules.sentences import sentence

#: VMs and hosts that are asked about.
_MOST_VMS = 8
_MOST_HOSTS = 12

#: Who, to which host, and why not.
_Refusal = tuple[str, str, str]


def refusals(snapshot: Snapshot, problem: Problem, goal: Goal, free: Collection[str]) -> Iterator[str]:
    """Of those VMs that may move, one sentence for all hosts that refuse a VM for the same reason."""
    offenders = goal.constraint.offenders(SnapshotPlacement(snapshot))
    hosts: dict[tuple[str, str], list[str]] = {}
    for who, host, why in _refusals(
        snapshot, problem, goal, [vm for vm in sorted(offenders) if vm in free][:_MOST_VMS]
    ):
        hosts.setdefault((who, why), []).append(host)
    for (who, why), refusing in hosts.items():
        yield f"{who} to {_names(snapshot, refusing)}: {why}"


def _refusals(snapshot: Snapshot, problem: Problem, goal: Goal, vms: Iterable[str]) -> Iterator[_Refusal]:
    """Of a positive group, to the hosts of its peers and all together; else of each VM to any host."""
    gathers = goal.gathers
    there = {problem.where[vm] for vm in goal.vms}
    asked = sorted(snapshot.hosts_of_cluster.get(problem.cluster, ()), key=lambda one: (-one.free_mb, one.id))
    fitting = [host for host in asked if goal.right(host.id) and (not gathers or host.id in there)]
    for vm in vms:
        for host in fitting[:_MOST_HOSTS]:
            if host.id != problem.where[vm]:
                for why in _why_not(snapshot, (vm,), host):
                    yield vm_name(vm, snapshot), host.id, why
    if gathers and goal.hard and vms:
        for host in [host for host in asked if host.id not in there][:_MOST_HOSTS]:
            for why in _why_not(snapshot, goal.vms, host):
                yield "all together", host.id, why


def _why_not(snapshot: Snapshot, vms: tuple[str, ...], host: Host) -> Iterator[str]:
    if not host.up:
        yield f"the host is {host.status}"
        return
    found = list(vetoes(snapshot, host.cluster, vms, host.id))
    ours = [(rule, reason) for rule, reason in found if rule not in ENGINES_OWN]
    for rule, reason in ours or found:
        if not rule.amounts:
            yield sentence(reason, snapshot)
    if any(rule.amounts for rule, _ in found):
        memory_mb = sum(required_mb(snapshot.vm_by_id[vm]) for vm in vms)
        yield f"{memory_mb} MiB needed, {host.free_mb} MiB free"


def _names(snapshot: Snapshot, hosts: Iterable[str]) -> str:
    return ", ".join(sorted(host_name(host, snapshot) for host in hosts))
