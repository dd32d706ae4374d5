"""What may be migrated where: by all rules that count in the cluster, and by the engine's own filters.

The one place that answers: plans are checked by it step by step, gates ask it again before each migration.
"""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.planning.plan import Step
from ovirt_placement.rules.catalogue import filters_in_force
from ovirt_placement.rules.reasons import Reason
from ovirt_placement.rules.rule import Rule
from ovirt_placement.rules.verdict import Request


def filters_of(snapshot: Snapshot, cluster: str) -> tuple[Rule, ...]:
    """All filters that a migration within a cluster must pass."""
    return filters_in_force(snapshot.cluster_by_id[cluster])


def request_for(snapshot: Snapshot, cluster: str, vms: tuple[str, ...], hosts: tuple[str, ...]) -> Request:
    """The question to a filter: unlike the engine, a plan takes no VM away from its peers."""
    return Request(vms, hosts, parameters=snapshot.cluster_by_id[cluster].scheduling_properties)


def vetoes(
    snapshot: Snapshot, cluster: str, vms: tuple[str, ...], host: str
) -> Iterator[tuple[Rule, Reason]]:
    """Why VMs may not go to a host together, and which rule says so; the engine's own filters come last."""
    request = request_for(snapshot, cluster, vms, (host,))
    for rule in filters_of(snapshot, cluster):
        for verdict in rule.filter(snapshot, request) if rule.filter is not None else ():
            yield from ((rule, reason) for reason in verdict.reasons if reason.kind.veto)


def legal(snapshot: Snapshot, step: Step) -> bool:
    """Whether the rules, capacity and the state of VMs and target let a step be taken now."""
    target = snapshot.host_by_id.get(step.target)
    if target is None:
        return False
    for vm_id, source in zip(step.vms, step.sources, strict=True):
        vm = snapshot.vm_by_id.get(vm_id)
        if vm is None or vm.host != source or vm.cluster != target.cluster or not _moves(vm):
            return False
    return next(vetoes(snapshot, target.cluster, step.vms, step.target), None) is None


def _moves(vm: Vm) -> bool:
    return vm.movable and vm.status == "up"
