"""Whether a running VM may be migrated at all, wherever to."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.verdict import Reason, ReasonKind

HOSTED_ENGINE: Final = ReasonKind("hosted_engine", "it is the hosted engine", veto=True)
NOT_MIGRATABLE: Final = ReasonKind(
    "not_migratable", "it may not be migrated automatically (pinned, or only its user may)", veto=True
)
HOST_STATUS: Final = ReasonKind("host_status", "its host is {status}", veto=True)
VM_STATUS: Final = ReasonKind("vm_status", "its status is {status}, not up", veto=True)

#: States of a host that VMs can leave by migration: one that is non_operational answers, and lacks a network
#: or a storage domain. Source: MigrateVmCommand.validate asks nothing of the source host, and the engine
#: itself migrates the VMs of a host that becomes non_operational.
LEAVABLE: Final = ("up", "preparing_for_maintenance", "non_operational")


def moved_by_engine(vm: Vm) -> bool:
    """Whether the engine itself migrates a VM off a host that is deactivated.

    Source: MaintenanceNumberOfVdssCommand, "The Hosted Engine VM is migrated by the HA agent".
    """
    return vm.hosted_engine and vm.status == "up"


def expected_by_engine(
    needed_mb: int, free_mb: Callable[[str], int], *choices: Collection[str]
) -> str | None:
    """Where a VM is expected that the engine itself migrates, which needs so much; None if nowhere.

    Which host the HA agent chooses is not known: that with the most free memory, of the first choice if
    possible.
    """
    for hosts in choices:
        best = max(hosts, key=lambda host: (free_mb(host), host), default=None)
        if best is not None and free_mb(best) >= needed_mb:
            return best
    return None


def why_immovable(snapshot: Snapshot, vm: Vm) -> Reason | None:
    """Why a running VM may not be migrated by the enforcer, whatever the target; None if it may."""
    host = snapshot.host_by_id.get(vm.host or "")
    if vm.hosted_engine:
        return Reason(HOSTED_ENGINE, vm=vm.id)
    if not vm.migratable:
        return Reason(NOT_MIGRATABLE, vm=vm.id)
    if host is None or host.status not in LEAVABLE:
        return Reason(HOST_STATUS, vm=vm.id, host=vm.host, status=host.status if host else "not known")
    if vm.status != "up" or vm.id in snapshot.pending_hosts:
        return Reason(VM_STATUS, vm=vm.id, status=vm.status)
    return None
