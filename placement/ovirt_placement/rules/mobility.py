"""Whether a running VM may be migrated at all, wherever to."""

from __future__ import annotations

from ovirt_placement.model import Snapshot, Vm

#: States of a host that VMs can leave by migration.
_LEAVABLE = ("up", "preparing_for_maintenance")


def why_immovable(snapshot: Snapshot, vm: Vm) -> str | None:
    """Why a running VM may not be migrated by the enforcer, whatever the target; None if it may."""
    host = snapshot.host_by_id.get(vm.host or "")
    if vm.hosted_engine:
        return "it is the hosted engine"
    if not vm.migratable:
        return "it may not be migrated automatically (pinned, or only its user may)"
    if host is None or host.status not in _LEAVABLE:
        return f"its host is {host.status if host else 'not known'}"
    if vm.status != "up" or vm.id in snapshot.pending_hosts:
        return f"its status is {vm.status}, not up"
    return None
