"""Lets a host arrive in maintenance: where our filters together refuse every host, they refuse none.

The engine asks external filters only when it carries a drain out, and passes in silence over a VM that they
leave no host: the host would prepare for maintenance for ever (MigrateMultipleVmsCommand). Its own filters
have judged by then; what ours ask for is a violation afterwards, and repaired as one.
"""

from __future__ import annotations

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.catalogue import in_force
from ovirt_placement.rules.rule import UnitKind
from ovirt_placement.rules.verdict import Request


def is_drained(snapshot: Snapshot, vm_id: str) -> bool:
    """Whether a VM runs on a host that the engine empties."""
    vm = snapshot.vm_by_id.get(vm_id)
    host = None if vm is None or vm.host is None else snapshot.host_by_id.get(vm.host)
    return host is not None and host.status == "preparing_for_maintenance"


def gives_way(snapshot: Snapshot, request: Request) -> bool:
    """Whether our filters refuse the one VM of a request every host, and its host is to become empty."""
    (vm,) = request.vms
    if not is_drained(snapshot, vm):
        return False
    left = request.candidate_hosts
    for rule in in_force(snapshot.cluster_by_id[snapshot.vm_by_id[vm].cluster], UnitKind.FILTER):
        if rule.ours and rule.filter is not None and left:
            verdicts = rule.filter(snapshot, replace(request, candidate_hosts=left))
            left = tuple(verdict.host for verdict in verdicts if verdict.accepted)
    return not left
